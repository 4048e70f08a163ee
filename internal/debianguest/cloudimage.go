package debianguest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vmop/sdk/internal/efiboot"
)

const (
	mebibyte = 1 << 20
	// espSize is that of the EFI system partition, which precedes the root.
	espSize    = 64 * mebibyte
	rootOffset = mebibyte + espSize
)

// WriteCloudImage writes a qcow2 image that UEFI firmware boots from a boot loader in its own
// partition, like the cloud images of distributions: partitions 1, the root, and 15, of EFI, in a
// GUID partition table. It needs sgdisk, dd, qemu-img, and the requirements of package efiboot.
func (i Image) WriteCloudImage(ctx context.Context, file string) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(file), "cloudimage-")
	if err != nil {
		return fmt.Errorf("debian guest: cloud image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	esp, raw := filepath.Join(dir, "esp"), filepath.Join(dir, "raw")
	// fstab=no: the root's own table names the whole disk.
	line := "root=/dev/vda1 rw console=ttyS0 no_timer_check fstab=no"
	if err := efiboot.WriteSystemPartition(ctx, esp, espSize, i.Kernel, i.Initrd, line); err != nil {
		return fmt.Errorf("debian guest: cloud image: %w", err)
	}
	root, err := os.Stat(i.Disk)
	if err != nil {
		return fmt.Errorf("debian guest: cloud image: %w", err)
	}
	// The second partition table is at the end.
	empty, err := os.Create(raw)
	if err == nil {
		err = errors.Join(empty.Truncate(rootOffset+root.Size()+mebibyte), empty.Close())
	}
	if err != nil {
		return fmt.Errorf("debian guest: cloud image: %w", err)
	}
	for _, command := range [][]string{
		{
			"sgdisk", "--new=15:1M:+" + kibibytes(espSize), "--typecode=15:ef00",
			"--new=1:" + kibibytes(rootOffset) + ":+" + kibibytes(root.Size()), "--typecode=1:8300", raw,
		},
		{"dd", "if=" + esp, "of=" + raw, "bs=1M", "seek=1", "conv=sparse,notrunc", "status=none"},
		{"dd", "if=" + i.Disk, "of=" + raw, "bs=1M", fmt.Sprint("seek=", rootOffset/mebibyte), "conv=sparse,notrunc", "status=none"},
		{"qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", raw, file},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("debian guest: cloud image: %s: %w\n%s", command[0], err, out)
		}
	}
	return nil
}

func kibibytes(bytes int64) string { return fmt.Sprint(bytes>>10, "K") }
