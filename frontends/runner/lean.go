package main

import (
	"bufio"
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
// machine since, as soon as it idles.
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
		unmapText()
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

// unmapText takes the program's instructions out of the memory of the process:
// the start went through most of them, and idling needs few. Those come back
// by themselves, one page at a time, from the file or the page cache. Only
// executable pages are safe to drop so: nobody has changed them.
//
// It is best effort: a process that cannot be told to is larger, nothing else.
func unmapText() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// from-to permissions offset device inode path
		fields := strings.Fields(lines.Text())
		var from, to uintptr
		if len(fields) < 6 || fields[1] != "r-xp" || fields[5] != self {
			continue
		}
		if n, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); n != 2 || err != nil {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
	}
}
