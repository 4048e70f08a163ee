package imageinspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Format is the format of an image, by QEMU's name for its block driver, or iso9660 for the image
// of an optical disc (for QEMU that is a raw image).
type Format string

// The recognized formats. Only raw and qcow2 can be used for disks.
const (
	FormatRaw       Format = "raw"
	FormatQcow2     Format = "qcow2"
	FormatISO9660   Format = "iso9660"
	FormatQcow      Format = "qcow"
	FormatVMDK      Format = "vmdk"
	FormatVDI       Format = "vdi"
	FormatVHDX      Format = "vhdx"
	FormatVPC       Format = "vpc"
	FormatQED       Format = "qed"
	FormatParallels Format = "parallels"
)

// HeaderSize is how many bytes from the start of an image [ProbeFormat] needs. A shorter image must
// be passed whole.
const HeaderSize = 512

// ProbeFormat decides with which format an image of fileSize bytes that starts with header may be
// opened, raw or qcow2, and returns the size in bytes of the disk that a guest will see. It is for
// images of undeclared format, like disk.img in a volume.
//
// The header is not trusted: a guest can write a qcow2 header with a backing file into its raw
// disk; opened as qcow2, the disk would then expose any file that QEMU can read. Two rules prevent
// that:
//   - The caller must probe once, before the image's first use, record the result and pass it to
//     QEMU explicitly ever after. A raw image that later looks like qcow2 stays raw.
//   - An image that refers to other files or needs keys is refused even at first use, as it may
//     have been uploaded by a stranger: [ErrBackingFile], [ErrDataFile], [ErrEncrypted],
//     [ErrIncompatibleFeatures].
//
// Other image formats are refused with [ErrUnsupportedFormat] rather than taken for raw, because a
// guest could only see garbage; everything else is raw. On error the format is that of the image,
// and the size is 0.
func ProbeFormat(header []byte, fileSize int64) (format Format, virtualSize int64, err error) {
	if fileSize < 0 {
		return FormatRaw, 0, fmt.Errorf("%w: negative file size", ErrInvalidHeader)
	}
	if int64(len(header)) > fileSize {
		header = header[:fileSize]
	}
	if int64(len(header)) < min(fileSize, HeaderSize) {
		// A decision on less would depend on how much was read.
		return FormatRaw, 0, fmt.Errorf("%w: %d bytes are too few to decide", ErrInvalidHeader, len(header))
	}
	format = identify(header)
	switch format {
	case FormatRaw:
		return format, fileSize, nil
	case FormatQcow2:
		h, err := parseQcow2Header(header, fileSize)
		if err == nil {
			err = h.usable()
		}
		if err != nil {
			return format, 0, err
		}
		return format, h.size, nil
	default:
		return format, 0, fmt.Errorf("%w: %s: convert it to qcow2 with qemu-img", ErrUnsupportedFormat, format)
	}
}

func identify(header []byte) Format {
	has := func(at int, magic string) bool {
		return len(header) >= at && bytes.HasPrefix(header[at:], []byte(magic))
	}
	switch {
	case has(0, qcow2Magic):
		if len(header) >= 8 && binary.BigEndian.Uint32(header[4:]) == 1 {
			return FormatQcow
		}
		return FormatQcow2
	case has(0, "KDMV"), has(0, "COWD"), has(0, "# Disk DescriptorFile"):
		return FormatVMDK
	case has(64, "\x7f\x10\xda\xbe"):
		return FormatVDI
	case has(0, "vhdxfile"):
		return FormatVHDX
	case has(0, "conectix"):
		return FormatVPC
	case has(0, "QED\x00"):
		return FormatQED
	case has(0, "WithoutFreeSpace"), has(0, "WithouFreSpacExt"):
		return FormatParallels
	default:
		return FormatRaw
	}
}
