package imageinspect

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// identifyFileSystem recognizes superblocks; nil if there is none. The order matters where two can
// be present: an encrypted or LVM volume may still have the superblock of an earlier file system,
// which formatting does not always overwrite.
func identifyFileSystem(volume *io.SectionReader) *FileSystem {
	for _, identify := range []func(*io.SectionReader) *FileSystem{
		identifyLUKS, identifyLVM, identifyISO9660, identifyExt, identifyXFS, identifyBtrfs,
		identifySquashFS, identifySwap, identifyNTFS, identifyFAT,
	} {
		if fs := identify(volume); fs != nil {
			return fs
		}
	}
	return nil
}

func identifyLUKS(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 0, 512)
	if !ok || string(b[:6]) != "LUKS\xba\xbe" {
		return nil
	}
	fs := &FileSystem{Type: "crypto_LUKS", UUID: text(b[168:208])}
	if binary.BigEndian.Uint16(b[6:]) == 2 {
		fs.Label = text(b[24:72])
	}
	return fs
}

func identifyLVM(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 512, 64)
	if !ok || string(b[:8]) != "LABELONE" || string(b[24:32]) != "LVM2 001" {
		return nil
	}
	// The UUID follows the label, at the start of the physical volume's header, and is written in
	// groups of 6, 4, 4, 4, 4, 4 and 6 characters.
	id := text(b[32:64])
	if len(id) != 32 {
		return &FileSystem{Type: "LVM2_member"}
	}
	return &FileSystem{Type: "LVM2_member", UUID: strings.Join([]string{
		id[:6], id[6:10], id[10:14], id[14:18], id[18:22], id[22:26], id[26:],
	}, "-")}
}

func identifyExt(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 1024, 136)
	le := binary.LittleEndian
	if !ok || le.Uint16(b[56:]) != 0xef53 {
		return nil
	}
	const (
		hasJournal = 0x4
		// extents, 64bit, mmp, flex_bg, inline data and later features: all that ext3 does not
		// have.
		ext4Incompatible = ^uint32(0x2 | 0x4 | 0x10)
		// huge files, checksums, large directories ...
		ext4ReadOnly = ^uint32(0x1 | 0x2 | 0x4)
	)
	fs := &FileSystem{Type: "ext2", Label: text(b[120:136]), UUID: uuid(b[104:120])}
	switch {
	case le.Uint32(b[96:])&ext4Incompatible != 0 || le.Uint32(b[100:])&ext4ReadOnly != 0:
		fs.Type = "ext4"
	case le.Uint32(b[92:])&hasJournal != 0:
		fs.Type = "ext3"
	}
	return fs
}

func identifyXFS(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 0, 120)
	if !ok || string(b[:4]) != "XFSB" {
		return nil
	}
	return &FileSystem{Type: "xfs", Label: text(b[108:120]), UUID: uuid(b[32:48])}
}

func identifyBtrfs(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 64<<10, 0x12b+256)
	if !ok || string(b[0x40:0x48]) != "_BHRfS_M" {
		return nil
	}
	return &FileSystem{Type: "btrfs", Label: text(b[0x12b:]), UUID: uuid(b[0x20:0x30])}
}

func identifySquashFS(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 0, 4)
	if !ok || string(b) != "hsqs" {
		return nil
	}
	return &FileSystem{Type: "squashfs"}
}

// identifySwap recognizes swap with the most common page size, 4 KiB.
func identifySwap(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 0, 4096)
	if !ok || string(b[4086:]) != "SWAPSPACE2" {
		return nil
	}
	return &FileSystem{Type: "swap", UUID: uuid(b[1036:1052]), Label: text(b[1052:1068])}
}

func identifyNTFS(volume *io.SectionReader) *FileSystem {
	b, ok := read(volume, 0, 512)
	if !ok || string(b[3:11]) != "NTFS    " {
		return nil
	}
	return &FileSystem{Type: "ntfs", UUID: fmt.Sprintf("%016X", binary.LittleEndian.Uint64(b[72:]))}
}

func identifyFAT(volume *io.SectionReader) *FileSystem {
	v, ok := openFAT(volume)
	if !ok {
		return nil
	}
	return &FileSystem{
		Type:  "vfat",
		Label: v.label(),
		UUID:  fmt.Sprintf("%04X-%04X", v.serial>>16, v.serial&0xffff),
	}
}

func identifyISO9660(volume *io.SectionReader) *FileSystem {
	v, ok := openISO9660(volume)
	if !ok {
		return nil
	}
	return &FileSystem{Type: "iso9660", Label: v.label, UUID: v.uuid}
}

func uuid(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
