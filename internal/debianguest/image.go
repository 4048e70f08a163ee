package debianguest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/buildcache"
)

// Image is a built guest. Its files belong to the cache: open them read-only, and boot from an
// overlay.
type Image struct {
	// Kernel is the path of a bzImage for -kernel.
	Kernel string
	// Initrd is the path of the initial RAM disk for -initrd. It has drivers for virtio-blk-pci
	// only.
	Initrd string
	// Disk is the path of the root file system: a raw image, sparse, 2 GiB, ext4 without a
	// partition table. It must be the guest's first virtio-blk disk.
	Disk string
	// Append is the kernel command line: root on /dev/vda, console on ttyS0, no_timer_check. On a
	// busy host, an emulated timer may be so late that the kernel takes it for broken and, with
	// interrupt remapping, panics.
	Append string
}

// WithoutCloudInit is a word for the kernel command line of a test that does not need cloud-init,
// which takes most of the boot time.
const WithoutCloudInit = "cloud-init=disabled"

// Options configure the build.
type Options struct {
	// CacheDir is where built images are kept. Empty means vmop/debianguest in os.UserCacheDir.
	CacheDir string
	// Log receives the output of the tools that build the image. Nil discards it; the end of a
	// failing tool's output is part of the error in any case.
	Log io.Writer
}

// ErrNotRoot reports that the guest or the base is not in the cache and that building it needs
// root.
var ErrNotRoot = errors.New("building it needs root: run the test once as root, then the cached image is used")

const (
	kernelName = "vmlinuz"
	initrdName = "initrd.img"
	diskName   = "disk.raw"
)

// Ensure returns the guest image, and builds it if the cache does not have one of the present
// recipe. Concurrent callers, also of other processes, wait for the one that builds; ctx limits the
// wait and the build. Nothing of an interrupted build is used later.
//
// Building needs root ([ErrNotRoot]), a Debian 12 host, and the packages debootstrap and e2fsprogs.
func Ensure(ctx context.Context, opts Options) (Image, error) {
	image, err := ensure(ctx, opts)
	if err != nil {
		return Image{}, fmt.Errorf("debian guest: %w", err)
	}
	return image, nil
}

func ensure(ctx context.Context, opts Options) (Image, error) {
	dir, err := cached(ctx, opts, recipeHash(), builder.build)
	if err != nil {
		return Image{}, err
	}
	return imageIn(dir), nil
}

// cached returns the cache's directory for a hash, building it if necessary. It appears by a
// rename, complete or not at all.
func cached(ctx context.Context, opts Options, hash string, build func(builder, context.Context) error) (string, error) {
	if opts.CacheDir == "" {
		folder, err := buildcache.Folder("", "debianguest")
		if err != nil {
			return "", err
		}
		opts.CacheDir = folder
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	dir := filepath.Join(opts.CacheDir, hash)
	if exists(dir) {
		return dir, nil
	}
	if os.Geteuid() != 0 {
		return "", ErrNotRoot
	}

	if err := os.MkdirAll(opts.CacheDir, 0o700); err != nil {
		return "", err
	}
	lock, err := buildcache.Lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(dir) {
		return dir, nil
	}

	// Only the holder of the lock builds this recipe, so any work directory was left behind by an
	// interrupted build.
	pattern := hash + ".build-"
	stale, err := filepath.Glob(filepath.Join(opts.CacheDir, pattern+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range stale {
		if err := removeTree(dir); err != nil {
			return "", err
		}
	}

	work, err := os.MkdirTemp(opts.CacheDir, pattern)
	if err != nil {
		return "", err
	}
	b := builder{dir: work, log: opts.Log, lock: lock}
	if err = os.Mkdir(b.result(), 0o755); err == nil {
		err = build(b, ctx)
	}
	if err == nil {
		err = os.Rename(b.result(), dir)
	}
	if err := errors.Join(err, removeTree(work)); err != nil {
		return "", err
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func imageIn(dir string) Image {
	return Image{
		Kernel: filepath.Join(dir, kernelName),
		Initrd: filepath.Join(dir, initrdName),
		Disk:   filepath.Join(dir, diskName),
		Append: "root=/dev/vda rw console=ttyS0 no_timer_check",
	}
}
