package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/asnobody"
	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A file that permissions keep somebody from is told with the manifest's field, with what
// cannot be done with it, for whom, whose it is, and with the command that helps.
func TestFilesOfSomebodyElse(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // which nobody shall pass
		t.Fatal(err)
	}
	object := desiredObject(t, "1Gi")
	image, closed := filepath.Join(top, "ann's system.img"), filepath.Join(top, "closed off")
	hidden := filepath.Join(closed, "system.img")
	if err := os.Mkdir(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{image, hidden} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
	owner := whoIs(os.Geteuid())
	for _, c := range []struct {
		name, file string
		mode, dir  os.FileMode
		kernel     bool
		what       string // that cannot be done
		denied     string // by what
		perm       string
		give       string
	}{
		{"an image that cannot be read", image, 0, 0o755, false, "read and written", image, "0000", "rw"},
		{"one that cannot be written", image, 0o444, 0o755, false, "written", image, "0444", "rw"},
		{"one in a closed directory", hidden, 0o666, 0, false, "read and written", closed, "0000", "x"},
		{"a kernel that cannot be read", image, 0, 0o755, true, "read", image, "0000", "r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.Chmod(c.file, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(closed, c.dir); err != nil {
				t.Fatal(err)
			}
			vm := *object.VirtualMachine
			config := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Drives: []runnerconfig.Drive{{Type: "raw", File: c.file}}}}}
			field := `spec.vm.disks[0]: disk "system-disk": `
			if c.kernel {
				vm.Spec.VM.Disks, field = nil, "spec.vm.kernelBoot.kernel: "
				config.Runner.VM.Drives, config.Runner.VM.KernelBoot = nil, &runnerconfig.KernelBoot{Kernel: c.file}
			}
			var text string
			asnobody.Do(t, func() {
				user := whoIs(os.Geteuid())
				want := fmt.Sprintf("%s%s cannot be %s: permission denied for %s: %s belongs to %s and group %d with mode %s, and a machine has your rights; its owner or root gives you what it takes: setfacl -m u:%d:%s %s",
					field, c.file, c.what, user, c.denied, owner, os.Getegid(), c.perm, os.Geteuid(), c.give, shellwords.Quote(c.denied))
				if user == owner { // the test is not root's
					want = fmt.Sprintf("%s%s cannot be %s: permission denied: %s is yours, with mode %s; give yourself what it takes: chmod u+%s %s",
						field, c.file, c.what, c.denied, c.perm, c.give, shellwords.Quote(c.denied))
				}
				if err := checkGiven(&vm, &config, top+"/images"); err == nil || err.Error() != want {
					text = fmt.Sprintf("%v\nwant %s", err, want)
				}
			})
			if text != "" {
				t.Error(strings.TrimSpace(text))
			}
		})
	}
}

// Whose file it is himself is not helped by rights that are given to users by name: the
// owner's own count for him.
func TestOwnFilesWithoutRights(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil {
		t.Fatal(err)
	}
	var text string
	asnobody.Do(t, func() {
		image := filepath.Join(top, "my image")
		if err := os.WriteFile(image, nil, 0o400); err != nil {
			text = err.Error()
			return
		}
		want := fmt.Sprintf("written: permission denied: %s is yours, with mode 0400; give yourself what it takes: chmod u+rw '%s'", image, image)
		if got := cannotBe(image, unix.R_OK|unix.W_OK, fs.ErrPermission); got != want {
			text = fmt.Sprintf("got %s\nwant %s", got, want)
		}
	})
	if text != "" {
		t.Error(text)
	}
}
