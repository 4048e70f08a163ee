package qemucmd_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// BenchmarkBuild builds and renders the machine of VM-Operator's example.
func BenchmarkBuild(b *testing.B) {
	m := small()
	m.Networks = []qemucmd.Network{{MAC: "02:00:00:00:00:01", User: &qemucmd.UserNetwork{}}}
	m.Disks = []qemucmd.Disk{{Device: "/dev/system-disk"}, {Device: "/dev/disk-1"}}
	m.CDDrives = []qemucmd.CDDrive{{Image: "/image.iso"}, {}}
	m.Display = &qemucmd.Display{SPICE: &qemucmd.SPICE{Port: 5900, USBRedirects: 2}}
	h := qemucmd.GenericHost()
	b.ReportAllocs()
	for b.Loop() {
		cmd, err := qemucmd.Build(m, h)
		if err != nil {
			b.Fatal(err)
		}
		if len(cmd.Args()) == 0 {
			b.Fatal("no arguments")
		}
	}
}
