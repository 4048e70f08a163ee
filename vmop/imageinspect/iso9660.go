package imageinspect

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

const isoSector = 2048

// isoVolume is an ISO 9660 volume. The long names that a seed needs are in the Rock Ridge fields of
// the primary directory, or in a second directory tree, Joliet.
type isoVolume struct {
	volume      *io.SectionReader
	label, uuid string
	primary     isoExtent
	joliet      *isoExtent
}

// isoExtent is the extent of a directory or file, in bytes.
type isoExtent struct {
	start, size int64
}

func openISO9660(volume *io.SectionReader) (*isoVolume, bool) {
	var v *isoVolume
	// The volume descriptors begin at sector 16 and end with one of type 255.
	const first, limit = 16, 32
	for sector := int64(first); sector < first+limit; sector++ {
		b, ok := read(volume, sector*isoSector, isoSector)
		if !ok || string(b[1:6]) != "CD001" {
			break
		}
		const primary, supplementary, terminator = 1, 2, 255
		switch kind := b[0]; {
		case kind == primary && v == nil:
			v = &isoVolume{volume: volume, label: text(b[40:72]), uuid: isoUUID(b), primary: isoRecordExtent(b[156:])}
		case kind == supplementary && v != nil && isJoliet(b[88:91]):
			extent := isoRecordExtent(b[156:])
			v.joliet = &extent
		case kind == terminator:
			return v, v != nil
		}
	}
	return v, v != nil
}

// isJoliet recognizes the three levels of UCS-2 by their escape sequences.
func isJoliet(escape []byte) bool {
	return escape[0] == '%' && escape[1] == '/' && strings.IndexByte("@CE", escape[2]) >= 0
}

// isoUUID returns the time of the last modification, or of the creation, in the form of blkid.
func isoUUID(descriptor []byte) string {
	for _, at := range []int{830, 813} {
		digits := string(descriptor[at : at+16])
		if strings.Trim(digits, "0\x00 ") == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		return fmt.Sprintf("%s-%s-%s-%s-%s-%s-%s", digits[:4], digits[4:6], digits[6:8],
			digits[8:10], digits[10:12], digits[12:14], digits[14:16])
	}
	return ""
}

func isoRecordExtent(record []byte) isoExtent {
	le := binary.LittleEndian
	return isoExtent{
		start: int64(le.Uint32(record[2:])) * isoSector,
		size:  int64(le.Uint32(record[10:])),
	}
}

func (v *isoVolume) readFile(name string) ([]byte, error) {
	content, err := v.find(v.primary, name, func(record, identifier []byte) string {
		if long := rockRidgeName(record, identifier); long != "" {
			return long
		}
		return string(identifier)
	})
	if content == nil && err == nil && v.joliet != nil {
		return v.find(*v.joliet, name, func(_, identifier []byte) string {
			return utf16String(identifier, binary.BigEndian)
		})
	}
	return content, err
}

func (v *isoVolume) find(directory isoExtent, name string, nameOf func(record, identifier []byte) string) ([]byte, error) {
	b, ok := read(v.volume, directory.start, int(min(directory.size, maxDirectory)))
	if !ok {
		return nil, errDamaged
	}
	for at := 0; at < len(b); {
		length := int(b[at])
		if length == 0 {
			// Records do not cross sectors: the rest of this one is empty.
			at = (at/isoSector + 1) * isoSector
			continue
		}
		const fixed = 33
		if length < fixed+1 || at+length > len(b) {
			return nil, errDamaged
		}
		record := b[at : at+length]
		at += length
		identifierEnd := fixed + int(record[32])
		if identifierEnd > length {
			return nil, errDamaged
		}
		const directoryFlag, multiExtentFlag = 0x02, 0x80
		if record[25]&directoryFlag != 0 {
			continue
		}
		found, _, _ := strings.Cut(nameOf(record, record[fixed:identifierEnd]), ";")
		if !strings.EqualFold(strings.TrimSuffix(found, "."), name) {
			continue
		}
		extent := isoRecordExtent(record)
		if extent.size > maxDocument || record[25]&multiExtentFlag != 0 {
			return nil, errTooLarge
		}
		content, ok := read(v.volume, extent.start, int(extent.size))
		if !ok {
			return nil, errDamaged
		}
		return content, nil
	}
	return nil, nil
}

// rockRidgeName joins the NM fields of a directory record; "" if it has none. Continuations outside
// of the record are ignored: such names are longer than those wanted.
func rockRidgeName(record, identifier []byte) string {
	// The identifier is padded to an even offset.
	at := 33 + len(identifier)
	at += at % 2
	var name strings.Builder
	for at+4 <= len(record) {
		length := int(record[at+2])
		if length < 4 || at+length > len(record) {
			break
		}
		if string(record[at:at+2]) == "NM" && length > 5 {
			name.Write(record[at+5 : at+length])
		}
		at += length
	}
	return name.String()
}
