package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
)

// lean gives back the memory that the start needed and the machine's life does
// not, and what looking after viewers took when the last of them has gone.
type lean struct {
	booted, viewed bool // the reports come one after the other
}

// State implements runner.Reporter.
func (l *lean) State(s runner.State) {
	viewed := s.ConsoleClient != ""
	if s.Phase == runner.PhaseBooting && !l.booted || l.viewed && !viewed {
		l.booted = true
		debug.FreeOSMemory()
		unmapText()
	}
	l.viewed = viewed
}

// Message implements runner.Reporter.
func (l *lean) Message(runner.Message) {}

// unmapText takes the program's instructions out of the memory of the process:
// the start went through most of them, and what follows needs few. Those come back
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
