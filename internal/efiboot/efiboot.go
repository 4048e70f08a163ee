// Package efiboot makes what UEFI firmware boots, for tests that boot a guest of a
// disk as an installed system is booted.
//
// It needs objcopy, mkfs.vfat, mmd, mcopy and systemd's UEFI stub (Debian's packages
// binutils, dosfstools, mtools and systemd-boot-efi).
package efiboot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// stub makes a kernel a UEFI application.
const stub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// WriteSystemPartition creates a file with a FAT file system of size bytes, a multiple of KiB. Its
// only file is the UEFI application that firmware boots, with kernel, initrd and command line.
func WriteSystemPartition(ctx context.Context, file string, size int64, kernel, initrd, commandLine string) (err error) {
	dir, err := os.MkdirTemp("", "efiboot-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	line, application := filepath.Join(dir, "cmdline"), filepath.Join(dir, "linux.efi")
	if err := os.WriteFile(line, []byte(commandLine), 0o600); err != nil {
		return err
	}
	args := []string{}
	// The stub reads these sections; they must not overlap in memory.
	for _, s := range []struct {
		name, file string
		address    int64
	}{
		{".cmdline", line, 0x30000}, {".linux", kernel, 0x2000000}, {".initrd", initrd, 0x6000000},
	} {
		args = append(args, "--add-section", s.name+"="+s.file, "--change-section-vma", s.name+"=0x"+strconv.FormatInt(s.address, 16))
	}
	for _, command := range [][]string{
		append(append([]string{"objcopy"}, args...), stub, application),
		{"mkfs.vfat", "-C", file, strconv.FormatInt(size>>10, 10)},
		{"mmd", "-i", file, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", file, application, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}
