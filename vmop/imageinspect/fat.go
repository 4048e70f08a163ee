package imageinspect

import (
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
)

// fatVolume is a FAT12, FAT16 or FAT32 volume. Offsets and sizes are in bytes.
type fatVolume struct {
	volume      *io.SectionReader
	bits        int
	serial      uint32
	bootLabel   string
	clusterSize int64
	clusters    uint32
	fatStart    int64
	fatSize     int64
	rootStart   int64
	rootSize    int64
	rootCluster uint32
	dataStart   int64
}

// openFAT checks the boot sector as strictly as Linux does: no magic number distinguishes FAT from
// any other boot sector.
func openFAT(volume *io.SectionReader) (*fatVolume, bool) {
	b, ok := read(volume, 0, 512)
	if !ok || b[510] != 0x55 || b[511] != 0xaa {
		return nil, false
	}
	le := binary.LittleEndian
	sector := int64(le.Uint16(b[11:]))
	perCluster, reserved, fats := int64(b[13]), int64(le.Uint16(b[14:])), int64(b[16])
	rootEntries, media := int64(le.Uint16(b[17:])), b[21]
	powerOf2 := func(n int64) bool { return n > 0 && n&(n-1) == 0 }
	if !powerOf2(sector) || sector < 512 || sector > 4096 || !powerOf2(perCluster) ||
		reserved == 0 || fats == 0 || fats > 2 || media < 0xf8 && media != 0xf0 {
		return nil, false
	}
	sectors := int64(le.Uint16(b[19:]))
	if sectors == 0 {
		sectors = int64(le.Uint32(b[32:]))
	}
	perFAT, extended := int64(le.Uint16(b[22:])), 36
	fat32 := perFAT == 0
	if fat32 {
		perFAT, extended = int64(le.Uint32(b[36:])), 64
	}

	v := &fatVolume{
		volume:      volume,
		clusterSize: sector * perCluster,
		fatStart:    reserved * sector,
		fatSize:     perFAT * sector,
		rootSize:    rootEntries * 32,
	}
	v.rootStart = v.fatStart + fats*v.fatSize
	rootSectors := (v.rootSize + sector - 1) / sector
	v.dataStart = v.rootStart + rootSectors*sector
	dataSectors := sectors - v.dataStart/sector
	if perFAT == 0 || dataSectors <= 0 {
		return nil, false
	}
	v.clusters = uint32(dataSectors / perCluster)
	switch {
	case fat32:
		v.bits, v.rootCluster = 32, le.Uint32(b[44:])
	case v.clusters < 4085:
		v.bits = 12
	default:
		v.bits = 16
	}
	if !fat32 && rootEntries == 0 {
		return nil, false
	}
	if signature := b[extended+2]; signature == 0x28 || signature == 0x29 {
		v.serial = le.Uint32(b[extended+3:])
		if signature == 0x29 {
			v.bootLabel = text(b[extended+7 : extended+18])
		}
	}
	return v, true
}

// label returns the label in the root directory; the copy in the boot sector is not always updated.
func (v *fatVolume) label() string {
	label := v.bootLabel
	if label == "NO NAME" {
		label = ""
	}
	for entry := range v.entries() {
		if entry.isLabel {
			return entry.short
		}
	}
	return label
}

func (v *fatVolume) readFile(name string) ([]byte, error) {
	for entry := range v.entries() {
		if entry.isLabel || entry.isDirectory {
			continue
		}
		if !strings.EqualFold(entry.long, name) && !strings.EqualFold(entry.short, name) {
			continue
		}
		if entry.size > maxDocument {
			return nil, errTooLarge
		}
		if entry.size == 0 {
			return []byte{}, nil
		}
		content, ok := v.readChain(entry.cluster, int64(entry.size))
		if !ok || int64(len(content)) < int64(entry.size) {
			return nil, errDamaged
		}
		return content, nil
	}
	return nil, nil
}

type fatEntry struct {
	short, long          string
	isLabel, isDirectory bool
	cluster, size        uint32
}

func (v *fatVolume) entries() func(yield func(fatEntry) bool) {
	return func(yield func(fatEntry) bool) {
		var directory []byte
		if v.bits == 32 {
			directory, _ = v.readChain(v.rootCluster, maxDirectory)
		} else {
			// At most 2 MiB: the number of entries has 16 bits.
			directory, _ = read(v.volume, v.rootStart, int(v.rootSize))
		}
		le := binary.LittleEndian
		var long []uint16
		for ; len(directory) >= 32 && directory[0] != 0; directory = directory[32:] {
			b := directory[:32]
			const deleted, attributesLong = 0xe5, 0x0f
			if b[0] == deleted {
				long = nil
				continue
			}
			if b[11] == attributesLong {
				// The last part of the name comes first. There are at most 20.
				part := longNamePart(b)
				if b[0]&0x40 != 0 {
					long = nil
				}
				if len(long) <= 20*13 {
					long = append(part, long...)
				}
				continue
			}
			entry := fatEntry{
				isLabel:     b[11]&0x08 != 0,
				isDirectory: b[11]&0x10 != 0,
				long:        string(utf16.Decode(long)),
				cluster:     uint32(le.Uint16(b[20:]))<<16 | uint32(le.Uint16(b[26:])),
				size:        le.Uint32(b[28:]),
			}
			if v.bits != 32 {
				entry.cluster &= 0xffff
			}
			if entry.isLabel {
				entry.short = text(b[:11])
			} else {
				entry.short = text(b[:8])
				if extension := text(b[8:11]); extension != "" {
					entry.short += "." + extension
				}
			}
			long = nil
			if !yield(entry) {
				return
			}
		}
	}
}

func longNamePart(b []byte) []uint16 {
	var units []uint16
	for _, r := range [][2]int{{1, 11}, {14, 26}, {28, 32}} {
		for at := r[0]; at < r[1]; at += 2 {
			u := binary.LittleEndian.Uint16(b[at:])
			if u == 0 || u == 0xffff {
				return units
			}
			units = append(units, u)
		}
	}
	return units
}

// readChain reads up to limit bytes of a chain of clusters; of a damaged chain, what could be read.
// A cycle ends at the limit.
func (v *fatVolume) readChain(cluster uint32, limit int64) ([]byte, bool) {
	var content []byte
	for int64(len(content)) < limit {
		if cluster < 2 || cluster-2 >= v.clusters {
			// The end of the chain is marked by a value above the last cluster.
			return content, cluster > v.clusters
		}
		n := min(limit-int64(len(content)), v.clusterSize)
		part, ok := read(v.volume, v.dataStart+int64(cluster-2)*v.clusterSize, int(n))
		if !ok {
			return content, false
		}
		content = append(content, part...)
		if cluster, ok = v.next(cluster); !ok {
			return content, false
		}
	}
	return content, true
}

func (v *fatVolume) next(cluster uint32) (uint32, bool) {
	at := int64(cluster) * int64(v.bits) / 8
	size := 2
	if v.bits == 32 {
		size = 4
	}
	if at+int64(size) > v.fatSize {
		return 0, false
	}
	b, ok := read(v.volume, v.fatStart+at, size)
	if !ok {
		return 0, false
	}
	switch v.bits {
	case 12:
		value := uint32(binary.LittleEndian.Uint16(b))
		if cluster%2 == 1 {
			return value >> 4, true
		}
		return value & 0xfff, true
	case 16:
		return uint32(binary.LittleEndian.Uint16(b)), true
	default:
		return binary.LittleEndian.Uint32(b) & 0x0fffffff, true
	}
}
