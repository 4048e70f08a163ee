package qemucmd_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

func TestDeviceID(t *testing.T) {
	for name, want := range map[string]string{
		"/machine/peripheral/disk0/virtio-backend":       "disk0",
		"/machine/peripheral/cpu-1":                      "cpu-1",
		"cd0":                                            "cd0", // query-block of QEMU 7.2 names IDE drives so
		"/machine/unattached/device[0]":                  "",
		"/machine/peripheral-anon/device[3]/virtio-back": "",
		"": "",
	} {
		if got := qemucmd.DeviceID(name); got != want {
			t.Errorf("%q has the id %q, want %q", name, got, want)
		}
	}
}

func TestIDsKnowTheirKind(t *testing.T) {
	for i := range 12 {
		if !qemucmd.IsCD(qemucmd.CDID(i)) || qemucmd.IsCD(qemucmd.DiskID(i)) || !qemucmd.IsCPU(qemucmd.CPUID(i)) || qemucmd.IsCPU(qemucmd.CDID(i)) {
			t.Error(i)
		}
	}
	for _, id := range []string{"", "cd", "cdx", "cd-1", "cdrom0", "cpu-", "cpu-a", "cpu1"} {
		if qemucmd.IsCD(id) || qemucmd.IsCPU(id) {
			t.Error(id)
		}
	}
}

func TestSocketNamesDiffer(t *testing.T) {
	seen := map[string]bool{"": true, qemucmd.SeedFileName: true}
	for _, p := range qemucmd.SocketPurposes() {
		if seen[p.FileName()] {
			t.Errorf("%s: %q", p, p.FileName())
		}
		seen[p.FileName()] = true
	}
}
