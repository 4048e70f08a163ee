package tinyguest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/buildcache"
)

// Loader is the distribution's signed boot loader, by which UEFI firmware with Secure Boot starts
// [Guest].BzImage, which is signed too.
type Loader struct {
	// Shim is signed by Microsoft, whose keys firmware has. Its name on an EFI system partition is
	// /EFI/BOOT/BOOTX64.EFI.
	Shim string
	// GRUB is signed by the distribution, whose key the shim has. Its name is
	// /EFI/BOOT/grubx64.efi, and it reads /EFI/debian/grub.cfg.
	GRUB string
}

// loaderPackages have the two files. They are unpacked and not installed: installing would write a
// boot loader to the disk of the user who runs the tests.
var loaderPackages = []string{"shim-signed", "grub-efi-amd64-signed"}

// EnsureLoader returns the boot loader, which it fetches with apt-get if the cache does not have
// it. It ignores the options' flavor and kernel folder.
func EnsureLoader(ctx context.Context, o Options) (Loader, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	cache, err := buildcache.Folder(o.CacheDir, cacheKind)
	if err != nil {
		return Loader{}, fmt.Errorf("signed boot loader: %w", err)
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil && !os.IsNotExist(err) {
		return Loader{}, fmt.Errorf("signed boot loader: %w", err)
	}
	dir := filepath.Join(cache, "loader-"+key(append([]string{string(release)}, loaderPackages...)...))
	held, err := buildcache.Lock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return Loader{}, fmt.Errorf("signed boot loader: %w", err)
	}
	defer held.Close()
	if !exists(dir) {
		err := build(dir, func(dir string) error { return download(ctx, dir, o.Progress, loaderPackages...) })
		if err != nil {
			return Loader{}, fmt.Errorf("signed boot loader: %w", err)
		}
	}
	l := Loader{
		Shim: filepath.Join(dir, "usr/lib/shim/shimx64.efi.signed"),
		GRUB: filepath.Join(dir, "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"),
	}
	for _, path := range []string{l.Shim, l.GRUB} {
		if _, err := os.Stat(path); err != nil {
			return Loader{}, fmt.Errorf("signed boot loader: %w", err)
		}
	}
	return l, nil
}
