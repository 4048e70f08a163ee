package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// swapper puts other files in the places of images once they have been looked at,
// just before QEMU starts.
type swapper struct {
	Reporter
	swap func()
}

func (s *swapper) State(st State) {
	if st.Phase == PhaseStarting && s.swap != nil {
		s.swap()
		s.swap = nil
	}
	s.Reporter.State(st)
}

// QEMU uses the files that were looked at, whatever has their paths by then, and a
// qcow2 image has no backing file, whatever it says by then.
func TestImagesThatAreReplacedAfterTheyWereLookedAt(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	put(t, victim, strings.Repeat("victim's ", 1<<17))
	before, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	raw, cow, moved := filepath.Join(dir, "raw.img"), filepath.Join(dir, "image.qcow2"), filepath.Join(dir, "moved.img")
	put(t, raw, strings.Repeat("\x00", 1<<20))
	put(t, cow, string(qcow2(t)))
	c := cdConfig(t)
	cd, kernel := filepath.Join(dir, "cd.iso"), filepath.Join(dir, "kernel")
	put(t, cd, string(disc("cd")))
	image, err := os.ReadFile(c.Runner.VM.KernelBoot.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	put(t, kernel, string(image))
	c.Runner.VM.KernelBoot.Kernel = kernel
	c.Runner.VM.Drives = []runnerconfig.Drive{
		{Type: "raw", Name: "raw", Resource: raw}, {Type: "raw", Name: "cow", Resource: cow}, {Type: runnerconfig.DriveCD, File: cd},
	}
	backed := qcow2(t, "-b", victim, "-F", "raw")
	r := start(t, c, d, func(o *Options) {
		o.Reporter = &swapper{Reporter: o.Reporter, swap: func() {
			if err := os.Rename(raw, moved); err != nil {
				t.Error(err)
			}
			for _, path := range []string{raw, cd, kernel} {
				linkInstead(t, path, victim)
			}
			// In place: the same file has another header now.
			if err := os.WriteFile(cow, backed, 0o600); err != nil {
				t.Error(err)
			}
		}}
	})
	console := r.console(t)
	command(t, console, "write vda 0 mine")
	command(t, console, "write vdb 0 mine")
	if got := command(t, console, "read vdb 512 8"); strings.Contains(got, "victim") {
		t.Errorf("the guest reads the backing file: %q", got)
	}
	discIn(t, console, "sr0", disc("cd"))
	_, files := r.held(t, r.tools(t))
	if slices.Contains(files, victim) || !slices.Contains(files, moved) {
		t.Errorf("QEMU has open %v", files)
	}
	r.cancel()
	r.wait(t)
	if after, err := os.ReadFile(victim); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the victim was written to: %v", err)
	}
	if got, err := os.ReadFile(moved); err != nil || !bytes.HasPrefix(got, []byte("mine")) {
		t.Errorf("the image that was looked at has %q, %v", got[:8], err)
	}
	nothingLeft(t, d)
}

// linkInstead puts a symbolic link in the place of a file.
func linkInstead(t *testing.T, path, to string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Error(err)
	}
}

// So it is with the UEFI variables, which the firmware writes.
func TestVariablesThatAreReplacedAfterTheyWereLookedAt(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	victim, vars := filepath.Join(t.TempDir(), "victim"), filepath.Join(d.Data, runnerconfig.FirmwareVars)
	c := testConfig(t)
	c.Runner.VM.Firmware = "uefi"
	r := start(t, c, d, func(o *Options) {
		o.Reporter = &swapper{Reporter: o.Reporter, swap: func() {
			content, err := os.ReadFile(vars)
			if err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(victim, content, 0o600); err != nil {
				t.Error(err)
			}
			linkInstead(t, vars, victim)
		}}
	})
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if _, files := r.held(t, r.tools(t)); slices.Contains(files, victim) || !slices.Contains(files, vars+" (deleted)") {
		t.Errorf("QEMU has open %q", files)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// An image that another process has is named by its path.
func TestImageInUse(t *testing.T) {
	image := filepath.Join(t.TempDir(), "used.img")
	put(t, image, strings.Repeat("\x00", 1<<20))
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The bytes on which QEMU has its locks (block/file-posix.c).
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: 100, Len: 200}); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{{Type: "raw", Name: "used", Resource: image}}
	r := start(t, c, testDirs(t))
	if o, err := r.wait(t); err == nil || !strings.Contains(o.Message, "the disk image "+image+" is used by another process") {
		t.Errorf("outcome %+v, %v", o, err)
	}
}
