package runnerconfig_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// What the guest boots from without a boot index: the order of the list, or what
// its firmware decides. An index of one drive counts in both.
func TestBootOrder(t *testing.T) {
	for _, c := range []struct {
		order string
		given bool
		want  []int // of the CD and the disk, -1 for none
	}{
		{"", false, []int{0, 1}},
		{runnerconfig.BootOrderList, false, []int{0, 1}},
		{runnerconfig.BootOrderFirmware, false, []int{-1, -1}},
		{runnerconfig.BootOrderList, true, []int{-1, 5}},
		{runnerconfig.BootOrderFirmware, true, []int{-1, 5}},
	} {
		config := runnerconfig.Config{}
		vm := &config.Runner.VM
		vm.Name, vm.BootOrder = "web", c.order
		vm.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveCD, File: "/cd.iso"}, {Type: runnerconfig.DriveRaw, Resource: "/dev/system-disk"}}
		if c.given {
			five := 5
			vm.Drives[1].BootIndex = &five
		}
		runnerconfig.Default(&config)
		if err := runnerconfig.Validate(&config); err != nil {
			t.Fatal(err)
		}
		m, err := runnerconfig.Machine(&config, runnerconfig.Facts{Drives: make([]runnerconfig.DriveFacts, 2)})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range []*int{m.CDDrives[0].BootIndex, m.Disks[0].BootIndex} {
			if (got == nil) != (c.want[i] < 0) || got != nil && *got != c.want[i] {
				t.Errorf("%q, given %t: drive %d has %v, want %d", c.order, c.given, i, got, c.want[i])
			}
		}
	}
	config := runnerconfig.Config{}
	config.Runner.VM.Name, config.Runner.VM.BootOrder = "web", "random"
	runnerconfig.Default(&config)
	if runnerconfig.Validate(&config) == nil {
		t.Error("any word is a boot order")
	}
}
