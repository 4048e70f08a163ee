package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
)

// settled is how long nothing was reported when a machine idles. What was
// reported has reached the cluster by then.
const settled = 3 * time.Second

// lean gives back the memory that the start needed, or whatever happened to the
// machine since, as soon as it idles. What is not seen in the machine's state gives
// nothing back before the next report.
type lean struct {
	mu    sync.Mutex
	timer *time.Timer // nil before the guest executes
	ended bool
}

// State implements runner.Reporter.
func (l *lean) State(s runner.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended || s.Started == nil:
	case l.timer == nil:
		l.timer = time.AfterFunc(settled, l.giveBack)
	default:
		l.timer.Reset(settled)
	}
}

func (l *lean) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		debug.FreeOSMemory()
		unmapProgram()
	}
}

// end waits until no memory is being given back, and none will be.
func (l *lean) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Message implements runner.Reporter.
func (l *lean) Message(runner.Message) {}

// unmapProgram takes the program's instructions and constants out of the memory of
// the process: the start went through most of them, and idling needs few.
// Those come back by themselves, a few pages at a time, from the file or the page
// cache. Only what nobody can write and nobody has changed is safe to drop so: the
// loader of a program that is linked dynamically changes constants.
//
// It is best effort: a process that cannot be told to is larger, nothing else.
func unmapProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(string(smaps), self) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged finds in the text of smaps, see proc(5), where a file is mapped that
// nobody can write there, and of which no page has become the process's own.
func unchanged(smaps, file string) []mapping {
	var found []mapping
	var current mapping
	var fixed bool
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		var kib int
		switch {
		case len(fields) == 0:
		case !strings.HasSuffix(fields[0], ":"):
			// from-to permissions offset device inode path
			n, err := fmt.Sscanf(fields[0], "%x-%x", &current.from, &current.to)
			fixed = err == nil && n == 2 && len(fields) == 6 && fields[5] == file && (fields[1] == "r-xp" || fields[1] == "r--p")
		case fields[0] == "Anonymous:" || fields[0] == "Swap:":
			n, err := fmt.Sscanf(line[len(fields[0]):], "%d kB", &kib)
			fixed = fixed && err == nil && n == 1 && kib == 0
		case fields[0] == "VmFlags:" && fixed: // the last of an entry
			found = append(found, current)
		}
	}
	return found
}
