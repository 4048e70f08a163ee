package testbin

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
)

// QEMU is the name of the emulator that the tests run.
const QEMU = "qemu-system-x86_64"

// Find returns the path of a program, or fails the test.
func Find(tb testing.TB, program string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		tb.Fatalf("%s is not installed: run \"make deps\" (%v)", program, err)
	}
	return path
}

// Firmware is UEFI firmware for QEMU's first and second pflash drive.
type Firmware struct {
	Code string // read-only
	Vars string // template, to be copied for each machine
}

var firmwareFiles = []Firmware{
	{"/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"},         // Debian, Ubuntu
	{"/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"},     // Fedora
	{"/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd"}, // Arch
}

// UEFI returns UEFI firmware without Secure Boot, or fails the test.
func UEFI(tb testing.TB) Firmware {
	tb.Helper()
	for _, f := range firmwareFiles {
		if readable(f.Code) && readable(f.Vars) {
			return f
		}
	}
	tb.Fatal("OVMF is not installed: run \"make deps\"")
	return Firmware{}
}

func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// TinyGuest returns the tiny Linux guest, which the first call on a host builds, or fails the test.
// The environment variable VMOP_CACHE names the cache.
func TinyGuest(tb testing.TB) tinyguest.Guest {
	tb.Helper()
	return guest(tb, tinyguest.FlavorCloud)
}

// GenericTinyGuest returns the tiny guest with the kernel that has drivers for AHCI and IDE too,
// see [tinyguest.FlavorGeneric].
func GenericTinyGuest(tb testing.TB) tinyguest.Guest {
	tb.Helper()
	return guest(tb, tinyguest.FlavorGeneric)
}

func guest(tb testing.TB, flavor tinyguest.Flavor) tinyguest.Guest {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a package is fetched
	defer cancel()
	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{CacheDir: os.Getenv("VMOP_CACHE"), Flavor: flavor})
	if err != nil {
		tb.Fatalf("%v\nwhat it is built with is installed by \"make deps\"", err)
	}
	return guest
}

// SignedLoader returns the distribution's signed boot loader, which the first call on a host
// fetches, or fails the test.
func SignedLoader(tb testing.TB) tinyguest.Loader {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // packages are fetched
	defer cancel()
	loader, err := tinyguest.EnsureLoader(ctx, tinyguest.Options{CacheDir: os.Getenv("VMOP_CACHE")})
	if err != nil {
		tb.Fatalf("%v\nwhat it is fetched with is installed by \"make deps\"", err)
	}
	return loader
}
