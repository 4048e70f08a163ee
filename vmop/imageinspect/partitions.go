package imageinspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
)

const (
	// maxGPTEntries bounds the entries that are read of a GPT. The usual table has 128.
	maxGPTEntries = 1024
	// maxLogical bounds the logical partitions that are read of an MBR; their chain may be a cycle.
	maxLogical = 128

	sectorSize = 512
)

// readPartitions returns nil if there is no partition table. It may return both a table and an
// error.
func readPartitions(disk *io.SectionReader) (*PartitionTable, error) {
	for _, size := range []int64{sectorSize, 4096} {
		table, err := readGPT(disk, size)
		if table != nil || err != nil {
			return table, err
		}
	}
	return readMBR(disk)
}

// readGPT reads the primary table of a GUID partition table (UEFI specification, chapter 5). The
// checksums are not verified: falling back to the copy at the disk's end, as firmware does, would
// not improve the report.
func readGPT(disk *io.SectionReader, sector int64) (*PartitionTable, error) {
	const headerSize, entrySize = 92, 128
	header, ok := read(disk, sector, headerSize)
	if !ok || string(header[:8]) != "EFI PART" {
		return nil, nil
	}
	le := binary.LittleEndian
	first, count, size := le.Uint64(header[72:]), le.Uint32(header[80:]), le.Uint32(header[84:])
	if first > uint64(disk.Size()/sector) || size < entrySize || size > 4096 {
		return nil, fmt.Errorf("gpt: %d entries of %d bytes at sector %d", count, size, first)
	}
	table := &PartitionTable{Type: "gpt", ID: guid(header[56:72]), SectorSize: sector, Partitions: []Partition{}}
	for i := range int64(min(count, maxGPTEntries)) {
		entry, ok := read(disk, int64(first)*sector+i*int64(size), entrySize)
		if !ok {
			return table, errors.New("gpt: the entries end beyond the disk")
		}
		kind := guid(entry[:16])
		if kind == guid(make([]byte, 16)) {
			continue
		}
		begin, end := le.Uint64(entry[32:]), le.Uint64(entry[40:])
		if end < begin || end >= math.MaxInt64/uint64(sector) {
			return table, fmt.Errorf("gpt: partition %d from sector %d to %d", i+1, begin, end)
		}
		table.Partitions = append(table.Partitions, Partition{
			Index: int(i) + 1,
			Type:  kind,
			UUID:  guid(entry[16:32]),
			Label: utf16String(entry[56:128], le),
			Start: int64(begin) * sector,
			Size:  int64(end-begin+1) * sector,
		})
	}
	return table, nil
}

func readMBR(disk *io.SectionReader) (*PartitionTable, error) {
	boot, ok := bootRecord(disk, 0)
	if !ok {
		return nil, nil
	}
	entries := mbrEntries(boot)
	for _, e := range entries {
		// A boot sector that is not an MBR ends in the same two bytes.
		if e.flag&0x7f != 0 {
			return nil, nil
		}
	}
	table := &PartitionTable{
		Type:       "mbr",
		ID:         fmt.Sprintf("%08x", binary.LittleEndian.Uint32(boot[440:])),
		SectorSize: sectorSize,
		Partitions: []Partition{},
	}
	var extended int64
	for i, e := range entries {
		if e.kind == 0 || e.sectors == 0 {
			continue
		}
		table.Partitions = append(table.Partitions, e.partition(i+1, 0))
		if e.isExtended() && extended == 0 {
			extended = e.first
		}
	}
	err := readLogical(disk, table, extended)
	if len(table.Partitions) == 0 {
		return nil, nil
	}
	return table, err
}

// readLogical appends the logical partitions of the extended one, if it exists. Every link of the
// chain is a boot record with the partition, relative to that record, and the next link, relative
// to the extended partition.
func readLogical(disk *io.SectionReader, table *PartitionTable, extended int64) error {
	link := extended
	for n := 0; link != 0; n++ {
		if n == maxLogical {
			return fmt.Errorf("mbr: more than %d logical partitions", maxLogical)
		}
		boot, ok := bootRecord(disk, link)
		if !ok {
			return fmt.Errorf("mbr: no boot record of a logical partition at sector %d", link)
		}
		entries := mbrEntries(boot)
		if e := entries[0]; e.kind != 0 && e.sectors != 0 {
			table.Partitions = append(table.Partitions, e.partition(5+n, link))
		}
		next := entries[1]
		if !next.isExtended() || next.first == 0 {
			return nil
		}
		link = extended + next.first
	}
	return nil
}

type mbrEntry struct {
	flag, kind     byte
	first, sectors int64
}

func (e mbrEntry) isExtended() bool { return e.kind == 0x05 || e.kind == 0x0f || e.kind == 0x85 }

func (e mbrEntry) partition(index int, base int64) Partition {
	return Partition{
		Index: index,
		Type:  fmt.Sprintf("0x%02x", e.kind),
		Start: (base + e.first) * sectorSize,
		Size:  e.sectors * sectorSize,
	}
}

func bootRecord(disk *io.SectionReader, sector int64) ([]byte, bool) {
	boot, ok := read(disk, sector*sectorSize, sectorSize)
	return boot, ok && boot[510] == 0x55 && boot[511] == 0xaa
}

func mbrEntries(boot []byte) [4]mbrEntry {
	var entries [4]mbrEntry
	for i := range entries {
		b := boot[446+16*i:]
		entries[i] = mbrEntry{
			flag:    b[0],
			kind:    b[4],
			first:   int64(binary.LittleEndian.Uint32(b[8:])),
			sectors: int64(binary.LittleEndian.Uint32(b[12:])),
		}
	}
	return entries
}

// guid formats the mixed-endian form that GPT stores.
func guid(b []byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
}

func utf16String(b []byte, order binary.ByteOrder) string {
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		u := order.Uint16(b)
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// text decodes a label of fixed length, which ends at the first NUL and is padded with spaces.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(strings.TrimRight(s, " "), "\ufffd")
}

// read returns exactly n bytes at the offset, or false. It is for small n only.
func read(r *io.SectionReader, at int64, n int) ([]byte, bool) {
	if at < 0 || at > r.Size()-int64(n) {
		return nil, false
	}
	b := make([]byte, n)
	m, err := r.ReadAt(b, at)
	return b, m == n && (err == nil || errors.Is(err, io.EOF))
}
