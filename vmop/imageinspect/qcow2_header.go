package imageinspect

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

const qcow2Magic = "QFI\xfb"

// The incompatible feature bits of qcow2, from QEMU's docs/interop/qcow2.txt.
const (
	qcow2Dirty       = 1 << 0
	qcow2Corrupt     = 1 << 1
	qcow2DataFile    = 1 << 2
	qcow2Compression = 1 << 3
	qcow2ExtendedL2  = 1 << 4

	// qcow2Harmless are the bits that concern the image alone: reference counts to be rebuilt, the
	// compression type, finer allocation.
	qcow2Harmless = qcow2Dirty | qcow2Compression | qcow2ExtendedL2
)

// Limits of QEMU's own driver.
const (
	minClusterBits = 9
	maxClusterBits = 21
	maxL1Bytes     = 32 << 20
	maxBackingName = 1023
)

// qcow2Header is the header of a qcow2 image. Sizes and offsets are in bytes.
type qcow2Header struct {
	version       uint32
	backingOffset uint64
	backingSize   uint32
	clusterBits   uint32
	size          int64
	encryption    uint32
	l1Entries     uint32
	l1Offset      int64
	incompatible  uint64
	zstd          bool
}

// parseQcow2Header parses a header that begins with qcow2Magic, and checks that its numbers are
// possible in a file of fileSize bytes.
func parseQcow2Header(b []byte, fileSize int64) (qcow2Header, error) {
	const sizeV2, sizeV3 = 72, 104
	invalid := func(format string, args ...any) (qcow2Header, error) {
		return qcow2Header{}, fmt.Errorf("%w: qcow2: %s", ErrInvalidHeader, fmt.Sprintf(format, args...))
	}
	if len(b) < sizeV2 {
		return invalid("%d bytes are too short", len(b))
	}
	be := binary.BigEndian
	h := qcow2Header{
		version:       be.Uint32(b[4:]),
		backingOffset: be.Uint64(b[8:]),
		backingSize:   be.Uint32(b[16:]),
		clusterBits:   be.Uint32(b[20:]),
		encryption:    be.Uint32(b[32:]),
		l1Entries:     be.Uint32(b[36:]),
	}
	switch h.version {
	case 2:
	case 3:
		if len(b) < sizeV3 {
			return invalid("%d bytes are too short for version 3", len(b))
		}
		h.incompatible = be.Uint64(b[72:])
		length := be.Uint32(b[100:])
		if length < sizeV3 || length%8 != 0 {
			return invalid("header length %d", length)
		}
		if h.incompatible&qcow2Compression != 0 {
			if length <= sizeV3 || len(b) <= sizeV3 || b[sizeV3] != 1 {
				return invalid("unknown compression type")
			}
			h.zstd = true
		}
	default:
		return invalid("version %d", h.version)
	}
	if h.clusterBits < minClusterBits || h.clusterBits > maxClusterBits {
		return invalid("cluster size of 2^%d bytes", h.clusterBits)
	}

	size, l1Offset := be.Uint64(b[24:]), be.Uint64(b[40:])
	if size > math.MaxInt64 {
		return invalid("size of %d bytes", size)
	}
	h.size = int64(size)
	if uint64(h.l1Entries)*8 > maxL1Bytes {
		return invalid("L1 table of %d entries", h.l1Entries)
	}
	if l1Offset%h.clusterSize() != 0 || l1Offset > uint64(fileSize) ||
		uint64(h.l1Entries)*8 > uint64(fileSize)-l1Offset {
		return invalid("L1 table at %d does not lie in the file of %d bytes", l1Offset, fileSize)
	}
	h.l1Offset = int64(l1Offset)
	// What one L1 entry covers: at least 2^15 bytes and at most 2^39.
	perEntry := h.clusterSize() << h.l2Bits()
	if need := size/perEntry + min(size%perEntry, 1); need > uint64(h.l1Entries) {
		return invalid("L1 table of %d entries is too short for %d bytes", h.l1Entries, size)
	}
	if h.backingOffset != 0 && h.backingSize > maxBackingName {
		return invalid("backing file name of %d bytes", h.backingSize)
	}
	return h, nil
}

func (h qcow2Header) clusterSize() uint64 { return 1 << h.clusterBits }

// l2Bits is the binary logarithm of the number of entries of an L2 table, which takes one cluster.
// Extended entries have 16 bytes, others 8.
func (h qcow2Header) l2Bits() uint32 {
	if h.incompatible&qcow2ExtendedL2 != 0 {
		return h.clusterBits - 4
	}
	return h.clusterBits - 3
}

// usable refuses images that refer to other files, need keys or have unknown features.
func (h qcow2Header) usable() error {
	switch {
	case h.backingOffset != 0 || h.backingSize != 0:
		return fmt.Errorf("%w: flatten it with qemu-img convert", ErrBackingFile)
	case h.incompatible&qcow2DataFile != 0:
		return fmt.Errorf("%w: flatten it with qemu-img convert", ErrDataFile)
	case h.encryption != 0:
		return ErrEncrypted
	case h.incompatible&^qcow2Harmless != 0:
		return fmt.Errorf("%w: %s", ErrIncompatibleFeatures, strings.Join(h.featureNames(), ", "))
	}
	return nil
}

func (h qcow2Header) featureNames() []string {
	known := map[int]string{
		0: "dirty", 1: "corrupt", 2: "external data file", 3: "compression type", 4: "extended L2 entries",
	}
	var names []string
	for bit := range 64 {
		if h.incompatible&(1<<bit) == 0 {
			continue
		}
		name, ok := known[bit]
		if !ok {
			name = fmt.Sprintf("unknown bit %d", bit)
		}
		names = append(names, name)
	}
	return names
}

func (h qcow2Header) encryptionName() string {
	switch h.encryption {
	case 0:
		return ""
	case 1:
		return "aes"
	case 2:
		return "luks"
	default:
		return fmt.Sprintf("method %d", h.encryption)
	}
}
