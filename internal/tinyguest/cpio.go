package tinyguest

import (
	"bytes"
	"fmt"
	"slices"
)

// File types of a cpio entry's mode, as in stat(2).
const (
	modeDir     = 0o040000
	modeFile    = 0o100000
	modeSymlink = 0o120000
	modeChar    = 0o020000
)

type entry struct {
	name         string // without a leading slash
	mode         uint32 // type and permissions
	data         []byte // content, or a symlink's target
	major, minor uint32 // of a device
}

// writeCPIO packs entries in the format "newc" of the kernel's documentation ("initramfs buffer
// format"). Everything belongs to root and is dated at the epoch, so that the output is
// reproducible. Folders must precede their content, which sorting by name ensures.
func writeCPIO(entries []entry) []byte {
	var b bytes.Buffer
	sorted := slices.SortedFunc(slices.Values(entries), func(x, y entry) int {
		return bytes.Compare([]byte(x.name), []byte(y.name))
	})
	for i, e := range append(sorted, entry{name: "TRAILER!!!"}) {
		links := 1
		if e.mode&modeDir != 0 && e.mode&modeFile == 0 {
			links = 2
		}
		// magic, inode, mode, uid, gid, links, mtime, size, device of the file system (two), device
		// (two), length of the name, checksum
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			i+1, e.mode, 0, 0, links, 0, len(e.data), 0, 0, e.major, e.minor, len(e.name)+1, 0)
		b.WriteString(e.name)
		b.WriteByte(0)
		pad(&b)
		b.Write(e.data)
		pad(&b)
	}
	return b.Bytes()
}

func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
