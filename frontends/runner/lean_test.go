package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smapsOfAProgram = `00400000-00abb000 r-xp 00000000 fe:00 123 /usr/local/bin/vmop-runner
Rss:                4160 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00abb000-011e8000 r--p 006bb000 fe:00 123 /usr/local/bin/vmop-runner
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
011e8000-0125b000 rw-p 00de8000 fe:00 123 /usr/local/bin/vmop-runner
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me
0125b000-0125c000 r--p 00e5b000 fe:00 123 /usr/local/bin/vmop-runner
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd mr mw me
0125c000-0125d000 r--p 00e5c000 fe:00 123 /usr/local/bin/vmop-runner
Anonymous:             0 kB
Swap:                  4 kB
VmFlags: rd mr mw me
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me
7f7c000000-7f7c001000 r--p 00000000 fe:00 456 /usr/lib/libc.so.6
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
`

// What the process has written, or could write, is never dropped.
func TestOnlyWhatNobodyHasChangedIsDropped(t *testing.T) {
	got := unchanged(smapsOfAProgram, "/usr/local/bin/vmop-runner")
	want := []mapping{{0x400000, 0xabb000}, {0xabb000, 0x11e8000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A program goes on without what was dropped, and the kernel's list is read.
func TestTheProgramOutlivesItsLean(t *testing.T) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	if len(unchanged(string(smaps), self)) == 0 {
		t.Errorf("nothing was found in\n%s", smaps)
	}
	for range 3 {
		unmapProgram()
	}
	if got := strings.ToUpper(smapsOfAProgram[:8]); got != "00400000" {
		t.Errorf("a constant is %q now", got)
	}
}
