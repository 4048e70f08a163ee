package main

import (
	"bytes"
	"errors"
	"io"
)

const (
	signedHead = 2 << 20
	signedTail = 1 << 20
)

// sign is by what a file system or the like is recognized. A negative position is from the end of
// the device, rounded down to a multiple of unit.
type sign struct {
	what     string
	at, unit int64
	magic    string
}

const (
	mdMagic  = "\xfc\x4e\x2b\xa9"
	zfsLabel = "\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" // begins the list of names and values
)

// signs are those of content that may leave the first 4 KiB of a device zero, and of what is left of
// content whose first 4 KiB were cleared, as libblkid knows them. All are in the places of
// [signedPlaces].
var signs = []sign{
	{what: "a RAID member", at: 4 << 10, magic: mdMagic},
	{what: "bcache", at: 4<<10 + 24, magic: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{what: "bcachefs", at: 4<<10 + 24, magic: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
	{what: "OCFS2", at: 4 << 10, magic: "OCFSV2"},
	{what: "OCFS2", at: 8 << 10, magic: "OCFSV2"},
	{what: "ReiserFS", at: 8<<10 + 52, magic: "ReIsEr"},
	{what: "UFS", at: 8<<10 + 1372, magic: "\x54\x19\x01\x00"},
	{what: "LUKS", at: 16 << 10, magic: "SKUL\xba\xbe"},
	{what: "ZFS", at: 16 << 10, magic: zfsLabel},
	{what: "ISO 9660", at: 32<<10 + 1, magic: "CD001"},
	{what: "UDF", at: 32<<10 + 1, magic: "BEA01"},
	{what: "JFS", at: 32 << 10, magic: "JFS1"},
	{what: "ReiserFS", at: 64<<10 + 52, magic: "ReIsEr"},
	{what: "btrfs", at: 64<<10 + 64, magic: "_BHRfS_M"},
	{what: "GFS2", at: 64 << 10, magic: "\x01\x16\x19\x70"},
	{what: "UFS", at: 64<<10 + 1372, magic: "\x19\x01\x54\x19"},
	{what: "ZFS", at: 256<<10 + 16<<10, magic: zfsLabel},
	{what: "VMFS", at: 1 << 20, magic: "\x0d\xd0\x01\xc0"},
	{what: "ZFS", at: -512<<10 + 16<<10, unit: 256 << 10, magic: zfsLabel},
	{what: "ZFS", at: -256<<10 + 16<<10, unit: 256 << 10, magic: zfsLabel},
	{what: "a RAID member", at: -64 << 10, unit: 64 << 10, magic: mdMagic},
	{what: "a RAID member", at: -8 << 10, unit: 4 << 10, magic: mdMagic},
	{what: "a partition table", at: -4 << 10, unit: 4 << 10, magic: "EFI PART"},
	{what: "a RAID member", at: -1024, unit: 512, magic: "Intel Raid ISM Cfg Sig. "},
	{what: "a partition table", at: -512, unit: 512, magic: "EFI PART"},
	{what: "a RAID member", at: -512, unit: 512, magic: "\xde\x11\xde\x11"},
}

// signedPlaces returns where on a device of size bytes there may be signs.
func signedPlaces(size int64) []place {
	return []place{{0, min(signedHead, size)}, {max(0, size-signedTail) / deviceHead * deviceHead, size}}
}

// recognized returns what is on a device of size bytes, "" if that is nothing known. That a device
// is all zeros is not demanded: thick LVM clears the first 4 KiB of a volume and the signs in it,
// others the signs alone (wipefs), and the rest is what volumes before it have left there. It would
// also mean to read all of a volume, however large and thin. Kubernetes, too, formats what has no
// sign.
func recognized(dev io.ReaderAt, size int64) (string, error) {
	for _, s := range signs {
		at := s.at
		if at < 0 {
			at += size / s.unit * s.unit
		}
		if at < 0 || at+int64(len(s.magic)) > size {
			continue
		}
		got := make([]byte, len(s.magic))
		if _, err := dev.ReadAt(got, at); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if bytes.Equal(got, []byte(s.magic)) {
			return s.what, nil
		}
	}
	return "", nil
}
