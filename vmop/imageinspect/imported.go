package imageinspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// The reasons for which [ProbeImported] refuses an image of another hypervisor, for errors.Is.
var (
	// ErrParent: the image has only the differences from another one.
	ErrParent = errors.New("the image continues another one")
	// ErrExtents: the image keeps its data in other files, or is a part of one that does.
	ErrExtents = errors.New("the image consists of several files")
)

// ProbeImported detects the format of an uploaded image that no guest has used yet, by its content:
// raw, qcow2 or iso9660, which are used as they are, or vmdk or vdi, which must be converted first.
// It also returns the size of the disk in bytes. An image that refers to other files, needs keys,
// is compressed or is text is refused, as is every other format. It reads a few kilobytes of the
// image's size bytes.
func ProbeImported(image io.ReaderAt, size int64) (Format, int64, error) {
	if size <= 0 {
		return FormatRaw, 0, fmt.Errorf("%w: it is empty", ErrInvalidHeader)
	}
	header := make([]byte, min(size, HeaderSize))
	if _, err := image.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return FormatRaw, 0, err
	}
	if err := CheckUpload(header); err != nil {
		return FormatRaw, 0, err
	}
	switch identify(header) {
	case FormatVMDK:
		disk, err := probeVMDK(header, image, size)
		return FormatVMDK, disk, err
	case FormatVDI:
		disk, err := probeVDI(header)
		return FormatVDI, disk, err
	}
	format, disk, err := ProbeFormat(header, size)
	if err == nil && disk == 0 {
		return format, 0, fmt.Errorf("%w: its disk is empty", ErrInvalidHeader)
	}
	if err != nil || format != FormatRaw {
		return format, disk, err
	}
	// ECMA-119, 8.1: the first volume descriptor is in sector 16.
	magic := make([]byte, 5)
	if _, err := image.ReadAt(magic, 16*2048+1); err == nil && string(magic) == "CD001" {
		format = FormatISO9660
	}
	return format, disk, nil
}

const (
	vmdkSector = 512
	// vmdkDescriptor is where QEMU reads the descriptor of an image with embedded data, whatever
	// its header, and vmdkDescriptorSize how much it reads (block/vmdk.c).
	vmdkDescriptor     = 1 * vmdkSector
	vmdkDescriptorSize = 20 * vmdkSector
)

var (
	vmdkExtent = regexp.MustCompile(`(?m)^[ \t]*(RW|RDONLY|NOACCESS)[ \t]`)
	vmdkParent = regexp.MustCompile(`(?m)^[ \t]*parentCID[ \t]*=[ \t]*([0-9a-fA-F]*)`)
)

// probeVMDK reads the header of "Hosted Sparse Extent" in VMware's "Virtual Disk Format 5.0".
func probeVMDK(header []byte, image io.ReaderAt, size int64) (int64, error) {
	if !bytes.HasPrefix(header, []byte("KDMV")) {
		return 0, fmt.Errorf("%w: the vmdk names the files with its data: make one file of them with qemu-img convert", ErrExtents)
	}
	if len(header) < HeaderSize {
		return 0, fmt.Errorf("%w: a vmdk of %d bytes", ErrInvalidHeader, len(header))
	}
	capacity, at, length := binary.LittleEndian.Uint64(header[12:]), binary.LittleEndian.Uint64(header[28:]), binary.LittleEndian.Uint64(header[36:])
	switch {
	case capacity == 0:
		// QEMU then trusts the descriptor for where the data is.
		return 0, fmt.Errorf("%w: the vmdk has no data of its own", ErrExtents)
	case capacity > maxDiskSize/vmdkSector:
		return 0, fmt.Errorf("%w: the vmdk's disk has %d sectors", ErrInvalidHeader, capacity)
	case at == 0:
		return 0, fmt.Errorf("%w: the vmdk is one of them, without a descriptor: make one file of them with qemu-img convert", ErrExtents)
	case at > uint64(size)/vmdkSector || length > uint64(size)/vmdkSector:
		return 0, fmt.Errorf("%w: the vmdk's descriptor is beyond its end", ErrInvalidHeader)
	}
	if err := checkVMDKFooter(header, image, size); err != nil {
		return 0, err
	}
	for _, part := range []struct{ at, length int64 }{{vmdkDescriptor, vmdkDescriptorSize}, {int64(at) * vmdkSector, min(int64(length)*vmdkSector, 4*vmdkDescriptorSize)}} {
		text := make([]byte, max(0, min(part.length, size-part.at)))
		if _, err := image.ReadAt(text, part.at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if err := checkVMDKDescriptor(text); err != nil {
			return 0, err
		}
	}
	return int64(capacity) * vmdkSector, nil
}

// checkVMDKFooter compares a header with the one at the end of the image, which QEMU uses where the
// first one announces it ("Stream-Optimized Compressed Sparse Extents"): otherwise the size used
// would not be the one that was checked.
func checkVMDKFooter(header []byte, image io.ReaderAt, size int64) error {
	const atEnd, directory = 1<<64 - 1, 56 // gdOffset
	if binary.LittleEndian.Uint64(header[directory:]) != atEnd {
		return nil
	}
	// The footer is followed by an end marker.
	footer := make([]byte, vmdkSector)
	if size < 4*vmdkSector {
		return fmt.Errorf("%w: the vmdk's footer is missing", ErrInvalidHeader)
	}
	if _, err := image.ReadAt(footer, size-2*vmdkSector); err != nil {
		return err
	}
	// Magic, version, flags, capacity, grains and descriptor.
	if !bytes.Equal(footer[:44], header[:44]) {
		return fmt.Errorf("%w: the vmdk's footer is missing, or says something else than its header", ErrInvalidHeader)
	}
	return nil
}

func checkVMDKDescriptor(text []byte) error {
	parent := vmdkParent.FindSubmatch(text)
	switch {
	case bytes.Contains(text, []byte("parentFileNameHint")), parent != nil && !bytes.EqualFold(parent[1], []byte("ffffffff")):
		return fmt.Errorf("%w: the vmdk has a parent: make one image of them with qemu-img convert", ErrParent)
	case len(vmdkExtent.FindAllIndex(text, 2)) > 1:
		return fmt.Errorf("%w: the vmdk's descriptor names more than one: make one of them with qemu-img convert", ErrExtents)
	case bytes.Contains(text, []byte("encryption.")):
		return fmt.Errorf("%w: vmdk", ErrEncryptedImage)
	}
	return nil
}

// ErrEncryptedImage: the image is encrypted, in a format other than qcow2; see [ErrEncrypted].
var ErrEncryptedImage = errors.New("the image is encrypted")

const maxDiskSize = 1 << 56

// probeVDI reads VirtualBox's header as QEMU's block/vdi.c describes it.
func probeVDI(header []byte) (int64, error) {
	if len(header) < HeaderSize {
		return 0, fmt.Errorf("%w: a vdi of %d bytes", ErrInvalidHeader, len(header))
	}
	const dynamic, static = 1, 2
	kind, size := binary.LittleEndian.Uint32(header[76:]), binary.LittleEndian.Uint64(header[368:])
	var none [16]byte
	switch {
	case kind != dynamic && kind != static, !bytes.Equal(header[424:440], none[:]), !bytes.Equal(header[440:456], none[:]):
		return 0, fmt.Errorf("%w: the vdi is a differencing image: clone it in VirtualBox first, which makes it whole", ErrParent)
	case size == 0 || size > maxDiskSize:
		return 0, fmt.Errorf("%w: the vdi's disk has %d bytes", ErrInvalidHeader, size)
	}
	return int64(size), nil
}
