package tinyguest

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmop/sdk/internal/efiboot"
)

// DiskSize is the size of the disk that [Guest.WriteDisk] writes, in bytes. A disk may be larger:
// the guest does not use the rest.
const DiskSize = 48 << 20

// WriteDisk writes a disk that UEFI firmware boots like an installed system: a FAT file system with
// one UEFI application, which contains kernel, initrd and command line, [CommandLine] and the given
// words.
func (g Guest) WriteDisk(ctx context.Context, file string, words ...string) error {
	line := strings.Join(append([]string{CommandLine}, words...), " ")
	if err := efiboot.WriteSystemPartition(ctx, file, DiskSize, g.BzImage, g.Initrd, line); err != nil {
		return fmt.Errorf("tiny guest: disk: %w", err)
	}
	return nil
}
