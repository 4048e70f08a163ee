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

// settled is how long nothing must have been reported for a machine to be idle. Reports have
// reached the cluster by then.
const settled = 3 * time.Second

// lean frees the memory that the start, or a change of the machine since, needed, as soon as the
// machine idles. What does not show in the machine's state frees nothing before the next report.
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

// end waits for a release of memory in progress and prevents further ones.
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

// unmapProgram drops the program's instructions and constants from the process's memory: the start
// used most of them, idling needs few. Pages in use are reloaded from the file or the page cache.
// Only mappings that are read-only and unmodified are safe to drop: the loader of a dynamically
// linked program changes constants.
//
// It is best effort: without it, the process is merely larger.
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

type mapping struct{ from, to uintptr }

// unchanged finds in the text of smaps, see proc(5), read-only mappings of a file none of whose
// pages is private to the process.
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
