package testbin_test

import (
	"os/exec"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

func ExampleTinyGuest() {
	_ = func(t *testing.T) { // a test
		guest := testbin.TinyGuest(t)
		qemu := exec.Command(testbin.Find(t, testbin.QEMU), "-machine", "q35", "-nographic",
			"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", tinyguest.CommandLine)
		if err := qemu.Run(); err != nil {
			t.Fatal(err)
		}
	}
}
