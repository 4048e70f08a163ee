package runner

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A disk is opened as QEMU is told to use it: from version 9.1 on it takes no
// descriptor that bypasses the host's cache where it shall not, and none that goes
// through it where it shall not. That such a QEMU starts with a block device is seen
// in the pods of a node (TestTheRunnersImagesInPods of package e2e).
func TestDisksAreOpenedAsQEMUUsesThem(t *testing.T) {
	for name, facts := range map[string]runnerconfig.DriveFacts{
		"device": {Device: true, FD: 9},
		"raw":    {Format: qemucmd.DiskFormatRaw, FD: 9},
		"qcow2":  {Format: qemucmd.DiskFormatQCOW2, FD: 9},
	} {
		if flags := diskFlags(facts, true); flags != diskFlags(facts, false)&^unix.O_ACCMODE|os.O_RDONLY {
			t.Errorf("%s: opened for reading by %#x", name, flags)
		}
		flags := diskFlags(facts, false)
		if flags&unix.O_ACCMODE != os.O_RDWR || flags&(os.O_CREATE|os.O_TRUNC|os.O_EXCL) != 0 {
			t.Errorf("%s: opened by %#x", name, flags)
		}
		c := testConfig(t)
		c.Runner.VM.UUID = "6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11"
		c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", Name: "disk", Resource: "/disk"}}
		m, err := runnerconfig.Machine(&c, runnerconfig.Facts{RuntimeDir: "/run", DataDir: "/data", Drives: []runnerconfig.DriveFacts{facts}})
		if err != nil {
			t.Fatal(err)
		}
		command, err := qemucmd.Build(m, qemucmd.GenericHost())
		if err != nil {
			t.Fatal(err)
		}
		drives := 0
		for _, argument := range command.Args() {
			var node struct {
				Driver   string `json:"driver"`
				Filename string `json:"filename"`
				Cache    struct{ Direct bool }
			}
			if !bytes.Contains([]byte(argument), []byte("/dev/fdset/")) || json.Unmarshal([]byte(argument), &node) != nil || node.Filename == "" {
				continue
			}
			drives++
			if node.Cache.Direct != (flags&unix.O_DIRECT != 0) {
				t.Errorf("%s: opened by %#x, and used as %s", name, flags, argument)
			}
		}
		if drives != 1 {
			t.Errorf("%s: %d disks among %q", name, drives, command.Args())
		}
	}
}
