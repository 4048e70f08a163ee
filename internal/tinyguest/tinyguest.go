package tinyguest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vmop/sdk/internal/buildcache"
)

// CommandLine is the kernel's command line for a guest on the first serial port. Words such as
// [WordAgent] may be appended. cryptomgr.notests saves a tenth of the boot, reboot=t makes a
// restart a triple fault, which every machine type understands, and panic=-1 restarts at once after
// a panic. On a busy host, an emulated timer may be so late that the kernel, without
// no_timer_check, takes it for broken and panics.
const CommandLine = "console=ttyS0 quiet cryptomgr.notests no_timer_check reboot=t panic=-1"

// Words on the kernel's command line that enable parts of the guest.
const (
	// WordAgent lets the guest answer the login protocol on PortAgent.
	WordAgent = "vmop.agent"
	// WordGuestAgent lets the guest answer QEMU guest agent requests on PortGuestAgent.
	WordGuestAgent = "vmop.qga"
	// WordIgnorePowerButton makes the guest ignore ACPI power-down requests.
	WordIgnorePowerButton = "vmop.ignore-powerbutton"
)

// Names of the virtio ports on which the guest's agents listen.
const (
	PortAgent      = "org.jdrupes.vmop_agent.0"
	PortGuestAgent = "org.qemu.guest_agent.0"
)

// Ready is the line that the guest prints when its devices have their drivers, before the prompt.
const Ready = "vmop-guest: ready"

// Flavor chooses among the distribution's kernels.
type Flavor string

// The flavors of kernel.
const (
	// FlavorCloud is the kernel for virtual machines, with virtio drivers and little else. It is
	// the default.
	FlavorCloud Flavor = ""
	// FlavorGeneric is the kernel for any machine. It is three times the download and has drivers
	// for AHCI and IDE too.
	FlavorGeneric Flavor = "generic"
)

// Options configure the guest's build. The zero value is useful.
type Options struct {
	// CacheDir is the folder below which everything is kept. Default: "vmop" in the user's cache
	// folder ([os.UserCacheDir]).
	CacheDir string

	// Flavor of the kernel package. It is ignored with KernelPackageDir.
	Flavor Flavor

	// KernelPackageDir is the root of an unpacked kernel package, with boot/vmlinuz-* or
	// lib/modules/*/vmlinuz and the modules below lib/modules. Of several kernels, the newest file
	// is taken. Default: a package is fetched with apt-get.
	KernelPackageDir string

	// Progress, if not nil, receives a line before each step that takes long.
	Progress io.Writer
}

// Guest names the files of a guest that is ready to boot. Users of the package must not write to
// them.
type Guest struct {
	// Kernel is the kernel for QEMU's -kernel that starts fastest: the ELF image vmlinux, or the
	// same as BzImage if the program that unpacks it (lz4, xz or zstd) was missing when the guest
	// was built.
	Kernel string
	// BzImage is the kernel as the distribution packs it. Firmware and machines with a TPM need it.
	BzImage string
	// Initrd is the initial file system for QEMU's -initrd.
	Initrd string
}

// File names within the folder of a guest, and of what [Guest.Export] writes.
const (
	fileKernel  = "vmlinux"
	fileBzImage = "vmlinuz"
	fileInitrd  = "initrd"
)

// ErrNoKernel reports that no kernel could be found. The message says what to supply.
var ErrNoKernel = errors.New("no kernel for the tiny guest")

// Ensure returns the guest, which it builds if the cache does not have it. Building takes a few
// seconds and, unless Options.KernelPackageDir is set, fetches a package. It may be called
// concurrently, also by several processes: one builds, the others wait. A guest's folder appears
// complete or not at all, and never changes afterwards. Old ones are not removed.
func Ensure(ctx context.Context, o Options) (Guest, error) {
	if runtime.GOARCH != "amd64" {
		return Guest{}, fmt.Errorf("tiny guest: built for amd64 only, this is %s", runtime.GOARCH)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	cache, err := buildcache.Folder(o.CacheDir, cacheKind)
	if err != nil {
		return Guest{}, fmt.Errorf("tiny guest: %w", err)
	}
	source, err := chooseSource(o)
	if err != nil {
		return Guest{}, fmt.Errorf("tiny guest: %w", err)
	}
	kernelDir := filepath.Join(cache, "kernel-"+kernelKey(source))
	guestDir := filepath.Join(cache, "guest-"+guestKey(source))
	if exists(guestDir) {
		return guestIn(guestDir), nil
	}

	held, err := buildcache.Lock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return Guest{}, fmt.Errorf("tiny guest: %w", err)
	}
	defer held.Close()
	if exists(guestDir) {
		return guestIn(guestDir), nil // built by another process meanwhile
	}
	if !exists(kernelDir) {
		err = build(kernelDir, func(dir string) error { return buildKernel(ctx, dir, source, o.Progress) })
		if err != nil {
			return Guest{}, fmt.Errorf("tiny guest: kernel: %w", err)
		}
	}
	err = build(guestDir, func(dir string) error { return buildGuest(ctx, dir, kernelDir) })
	if err != nil {
		return Guest{}, fmt.Errorf("tiny guest: %w", err)
	}
	return guestIn(guestDir), nil
}

// Export puts the guest's files into a folder as vmlinux, vmlinuz and initrd, as links where the
// file system allows it. Existing files of these names are replaced.
func (g Guest) Export(dir string) (Guest, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Guest{}, fmt.Errorf("tiny guest: export: %w", err)
	}
	out := Guest{
		Kernel:  filepath.Join(dir, fileKernel),
		BzImage: filepath.Join(dir, fileBzImage),
		Initrd:  filepath.Join(dir, fileInitrd),
	}
	for _, f := range []struct{ from, to string }{
		{g.Kernel, out.Kernel}, {g.BzImage, out.BzImage}, {g.Initrd, out.Initrd},
	} {
		if err := linkOrCopy(f.from, f.to); err != nil {
			return Guest{}, fmt.Errorf("tiny guest: export: %w", err)
		}
	}
	return out, nil
}

func guestIn(dir string) Guest {
	g := Guest{
		Kernel:  filepath.Join(dir, fileKernel),
		BzImage: filepath.Join(dir, fileBzImage),
		Initrd:  filepath.Join(dir, fileInitrd),
	}
	if !exists(g.Kernel) {
		g.Kernel = g.BzImage
	}
	return g
}

func buildGuest(ctx context.Context, dir, kernelDir string) error {
	init, err := compileInit(ctx, dir)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	initrd, err := packInitrd(init, filepath.Join(kernelDir, dirModules))
	if err != nil {
		return fmt.Errorf("initrd: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileInitrd), initrd, 0o600); err != nil {
		return err
	}
	for _, name := range []string{fileBzImage, fileKernel} {
		if name == fileKernel && !exists(filepath.Join(kernelDir, name)) {
			continue
		}
		if err := linkOrCopy(filepath.Join(kernelDir, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
