package cloudinit

import (
	"encoding/binary"
	"errors"
)

// Offsets in the boot sector and in directory entries, from Microsoft's FAT specification
// (fatgen103), in bytes. All fields are little-endian.
const (
	bpbBytesPerSector = 11
	bpbReserved       = 14
	bpbFATs           = 16
	bpbRootEntries    = 17
	bpbSectorsPerFAT  = 22
	bpbSerial         = 39
	bpbType           = 54

	entrySize       = 32
	entryAttributes = 11
	entryCreated    = 14
	entryAccessed   = 18
	entryModified   = 22
	entryCluster    = 26
	entryFileSize   = 28

	attributesLongName = 0x0f
)

// fatEpoch is 1 January 1980, the first day of FAT's calendar, in the form of a directory entry; 0
// is no valid date.
const fatEpoch = 1<<5 | 1

// normalize changes in a new FAT12 or FAT16 image what go-diskfs has no option for:
//   - the serial number, which it sets to 0 for every reproducible volume, so that two seeds on one
//     machine would share /dev/disk/by-uuid/0000-0000;
//   - the timestamps of the entries in the root directory, including the volume label, which come
//     from the clock (or from SOURCE_DATE_EPOCH);
//   - a cluster that it reserves for the root directory, which on FAT12 and FAT16 lies outside of
//     the clusters, and those it allocates for empty files: file system checks report both as
//     errors.
func normalize(image []byte, serial uint32) error {
	le := binary.LittleEndian
	sector := int(le.Uint16(image[bpbBytesPerSector:]))
	fatStart := int(le.Uint16(image[bpbReserved:])) * sector
	fatSize := int(le.Uint16(image[bpbSectorsPerFAT:])) * sector
	fats := int(image[bpbFATs])
	rootStart := fatStart + fats*fatSize
	rootEnd := rootStart + int(le.Uint16(image[bpbRootEntries:]))*entrySize
	if sector == 0 || fatSize == 0 || rootEnd > len(image) {
		return errors.New("the boot sector does not describe a FAT12 or FAT16 volume")
	}

	le.PutUint32(image[bpbSerial:], serial)

	clearEntry := clearFAT16
	if string(image[bpbType:bpbType+5]) == "FAT12" {
		clearEntry = clearFAT12
	}
	free := func(cluster int) {
		for i := range fats {
			start := fatStart + i*fatSize
			clearEntry(image[start:start+fatSize], cluster)
		}
	}
	const rootCluster = 2
	free(rootCluster)

	for at := rootStart; at < rootEnd && image[at] != 0; at += entrySize {
		entry := image[at : at+entrySize]
		if entry[entryAttributes] == attributesLongName {
			continue
		}
		le.PutUint32(entry[entryCreated:], fatEpoch<<16)
		le.PutUint16(entry[entryAccessed:], fatEpoch)
		le.PutUint32(entry[entryModified:], fatEpoch<<16)
		if cluster := le.Uint16(entry[entryCluster:]); cluster != 0 && le.Uint32(entry[entryFileSize:]) == 0 {
			free(int(cluster))
			le.PutUint16(entry[entryCluster:], 0)
		}
	}
	return nil
}

// clearFAT12 marks a cluster as free in a table of 12-bit entries: two entries share three bytes,
// the even one has the lower nibble of the middle byte.
func clearFAT12(fat []byte, cluster int) {
	at := cluster * 3 / 2
	if cluster%2 == 0 {
		fat[at] = 0
		fat[at+1] &= 0xf0
	} else {
		fat[at] &= 0x0f
		fat[at+1] = 0
	}
}

func clearFAT16(fat []byte, cluster int) {
	binary.LittleEndian.PutUint16(fat[2*cluster:], 0)
}
