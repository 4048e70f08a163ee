package machineconfig_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// An image is a disk that nobody writes to, and that of a CD is in a drive whose medium
// stays; its file is below the directory of its name.
func TestImagesOfReferences(t *testing.T) {
	vm := spec.NewVirtualMachine("lab", "web")
	vm.Spec.VM.MaximumCPUs = new(int32(1))
	vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindImage, Name: "golden", BootOrder: new(int32(2))}}
	spec.Default(vm)
	for format, want := range map[string]string{"": runnerconfig.DriveRaw, "raw": runnerconfig.DriveRaw, "qcow2": runnerconfig.DriveRaw, "iso": runnerconfig.DriveCD} {
		disks := machineconfig.Disks(vm)
		disks[0].Format = format
		c, err := machineconfig.ForDefaulted(vm, disks, machineconfig.Options{})
		if err != nil || len(c.Runner.VM.Drives) != 1 {
			t.Fatalf("%s: %+v, %v", format, c.Runner.VM.Drives, err)
		}
		d := c.Runner.VM.Drives[0]
		if d.Type != want || !d.ReadOnly || d.File != machineconfig.DiskMountDir+"/golden-vi-claim/disk.img" ||
			d.Size != 0 || d.GrowTo != 0 || d.Resource != "" || d.BootIndex == nil || *d.BootIndex != 1 {
			t.Errorf("%s: %+v", format, d)
		}
		runnerconfig.Default(&c)
		if err := runnerconfig.Validate(&c); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
	h := machineconfig.Host{DataDir: "/d", RuntimeDir: "/r", Disks: map[string]string{"golden": "/images/golden.img"}}
	if c, err := machineconfig.ForHost(vm, h); err != nil || !c.Runner.VM.Drives[0].ReadOnly {
		t.Errorf("on one host: %+v, %v", c.Runner.VM.Drives, err)
	}
}
