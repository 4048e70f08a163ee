package tinyguest

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

// efiStub is what makes a UEFI application of a kernel (Debian's
// systemd-boot-efi).
const efiStub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// DiskSize is the size of the disk that [Guest.WriteDisk] writes, in bytes. A
// disk may be larger: the guest leaves what is beyond alone.
const DiskSize = 48 << 20

// WriteDisk writes a disk that UEFI firmware boots, as an installed system is
// booted: a FAT file system with one UEFI application, which contains kernel,
// initrd and command line, [CommandLine] and the given words. It needs objcopy,
// mkfs.vfat, mmd, mcopy and systemd's UEFI stub.
func (g Guest) WriteDisk(ctx context.Context, file string, words ...string) (err error) {
	dir, err := os.MkdirTemp("", "tinyguest-")
	if err != nil {
		return fmt.Errorf("tiny guest: disk: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	line, application := filepath.Join(dir, "cmdline"), filepath.Join(dir, "linux.efi")
	commandLine := strings.Join(append([]string{CommandLine}, words...), " ")
	if err := os.WriteFile(line, []byte(commandLine), 0o600); err != nil {
		return fmt.Errorf("tiny guest: disk: %w", err)
	}
	args := []string{}
	// The stub looks for these sections; they must not overlap in memory.
	for _, s := range []struct {
		name, file string
		address    int64
	}{
		{".cmdline", line, 0x30000}, {".linux", g.BzImage, 0x2000000}, {".initrd", g.Initrd, 0x6000000},
	} {
		args = append(args, "--add-section", s.name+"="+s.file, "--change-section-vma", s.name+"=0x"+strconv.FormatInt(s.address, 16))
	}
	for _, command := range [][]string{
		append(append([]string{"objcopy"}, args...), efiStub, application),
		{"mkfs.vfat", "-C", file, strconv.Itoa(DiskSize >> 10)},
		{"mmd", "-i", file, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", file, application, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("tiny guest: disk: %s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}
