package runner

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// espDisk makes a disk with one EFI system partition that holds these files.
func espDisk(t *testing.T, image string, files map[string][]byte) {
	t.Helper()
	const (
		mebibyte = 1 << 20
		size     = 96 // MiB, of which the partition has all but the first and the last
	)
	tool := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), testbin.Find(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "files")
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size*mebibyte), f.Close()); err != nil {
		t.Fatal(err)
	}
	tool("sgdisk", "--new=1:1M:"+fmt.Sprint(size-2)+"M", "--typecode=1:ef00", image)
	partition := filepath.Join(t.TempDir(), "esp")
	tool("mkfs.vfat", "-F", "32", "-C", partition, fmt.Sprint((size-3)*mebibyte/1024))
	tool("mcopy", append(append([]string{"-s", "-i", partition}, entries...), "::")...)
	disk, err := os.OpenFile(image, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = disk.WriteAt(contents(t, partition), mebibyte)
	if err := errors.Join(err, disk.Close()); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tampered changes one letter of a program's text, of which the signature is none.
func tampered(t *testing.T, program []byte, text string) []byte {
	t.Helper()
	at := bytes.LastIndex(program, []byte(text))
	if at < 0 {
		t.Fatalf("the program does not say %q", text)
	}
	out := bytes.Clone(program)
	out[at]++
	return out
}

// TestSecureBootIsEnforced boots from a disk, as a guest does: what is signed
// along the whole way starts, and what was changed in one bit does not, unless
// Secure Boot is off.
func TestSecureBootIsEnforced(t *testing.T) {
	guest, loader := testGuest(t), testbin.SignedLoader(t)
	shim, grub, kernel := contents(t, loader.Shim), contents(t, loader.GRUB), contents(t, guest.BzImage)
	menu := fmt.Sprintf("set timeout=0\nlinux /boot/vmlinuz %s\ninitrd /boot/initrd\nboot\n", tinyguest.CommandLine)
	badShim := tampered(t, shim, "N\x00e\x00t\x00b\x00o\x00o\x00t\x00 \x00p\x00a\x00r\x00s\x00i\x00n\x00g\x00")
	badKernel := tampered(t, kernel, "debian-kernel@lists.debian.org")
	for _, tt := range []struct {
		name         string
		firmware     qemucmd.FirmwareKind
		shim, kernel []byte
		want         string
		starts       bool
	}{
		{"signed", "secure-4m", shim, kernel, "secure boot on", true},
		{"loader without a valid signature", "secure-4m", badShim, kernel, "Access Denied", false},
		{"kernel without a valid signature", "secure-4m", shim, badKernel, "bad shim signature", false},
		{"loader without a valid signature where nothing is enforced", "uefi", badShim, kernel, "secure boot off", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // each boots for long
			d := testDirs(t)
			image := filepath.Join(filepath.Dir(d.Data), "disk.img")
			espDisk(t, image, map[string][]byte{
				"/EFI/BOOT/BOOTX64.EFI": tt.shim, "/EFI/BOOT/grubx64.efi": grub, "/EFI/debian/grub.cfg": []byte(menu),
				"/boot/vmlinuz": tt.kernel, "/boot/initrd": contents(t, guest.Initrd),
			})
			c := testConfig(t)
			vm := &c.Runner.VM
			vm.KernelBoot, vm.Firmware, vm.MaximumRAM = nil, string(tt.firmware), 384<<20
			vm.Drives = []runnerconfig.Drive{{Type: "raw", Name: "system", File: image}}
			r := start(t, c, d)
			s := r.until(t, "the machine executes", func(s State) bool { return s.Phase == PhaseBooting })
			conn, err := net.Dial("unix", s.Socket(qemucmd.SocketConsole))
			if err != nil {
				t.Fatal(err)
			}
			console := tinyguest.NewConsole(conn)
			defer console.Close()
			if tt.starts {
				if err := console.WaitReady(withPatience(t)); err != nil {
					t.Fatal(err)
				}
				if got := command(t, console, "efi"); !strings.Contains(got, tt.want) {
					t.Errorf("efi: %s; want %q", got, tt.want)
				}
				if got := command(t, console, "cat /proc/cmdline"); !strings.Contains(got, "BOOT_IMAGE=/boot/vmlinuz") {
					t.Errorf("not booted from the disk: %s", got)
				}
			} else {
				expect(t, console, tt.want)
				if strings.Contains(console.Transcript(), tinyguest.Ready) {
					t.Error("the guest started nevertheless")
				}
			}
			r.cancel()
			r.wait(t)
		})
	}
}
