package runner

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// A group is told if being in it is what opens a device, and never root's.
func TestGroupFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := unix.Stat_t{
			Gid:  rapid.SampledFrom([]uint32{0, 6, 104, 993}).Draw(t, "group"),
			Mode: rapid.SampledFrom([]uint32{unix.S_IFBLK, unix.S_IFCHR, unix.S_IFREG, unix.S_IFDIR}).Draw(t, "kind") | rapid.Uint32Range(0, 0o777).Draw(t, "mode"),
		}
		device := s.Mode&unix.S_IFMT == unix.S_IFBLK || s.Mode&unix.S_IFMT == unix.S_IFCHR
		opens := device && s.Mode&0o060 == 0o060 && s.Mode&0o006 != 0o006
		want := 0
		if opens {
			want = int(s.Gid)
		}
		if got := groupFor(&s); got != want {
			t.Errorf("group %d, want %d", got, want)
		}
	})
}

func TestEmulation(t *testing.T) {
	found := Emulation{Reason: conditions.ReasonNoVirtualization, Message: "no vmx"}
	for _, c := range []struct {
		accelerator qemucmd.Accelerator
		wanted      string
		found       Emulation
		want        string
	}{
		{qemucmd.AcceleratorKVM, "auto", Emulation{}, ""},
		{qemucmd.AcceleratorTCG, "auto", found, conditions.ReasonNoVirtualization},
		{qemucmd.AcceleratorTCG, "", Emulation{}, conditions.ReasonEmulated},
		{qemucmd.AcceleratorTCG, "tcg", found, conditions.ReasonEmulationRequested},
		{qemucmd.AcceleratorTCG, "none", found, conditions.ReasonEmulationRequested},
	} {
		e := &Engine{}
		e.o.Emulation, e.o.Config.Runner.VM.Accelerator = c.found, c.wanted
		if got := e.emulation(c.accelerator); got.Reason != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// The device node belongs to the group of its directory, also when there is one.
func TestMakeKVM(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root makes device nodes: the test on the node has one, too")
		return
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 0, 4321); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kvm")
	for range 2 {
		if err := MakeKVM(path); err != nil {
			t.Fatal(err)
		}
		var s unix.Stat_t
		if err := unix.Lstat(path, &s); err != nil {
			t.Fatal(err)
		}
		if s.Mode != unix.S_IFCHR|0o660 || s.Gid != 4321 || s.Rdev != unix.Mkdev(10, 232) || groupFor(&s) != 4321 {
			t.Errorf("%+v", s)
		}
	}
}
