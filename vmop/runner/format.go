package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const qcow2Magic = "QFI\xfb"

type image struct {
	inode    uint64
	birth    int64
	size     int64 // of the disk in it, in bytes
	header   qemucmd.DiskFormat
	unusable error
}

func lookAt(found *os.File) (image, error) {
	// This opens the file that was found, even if its path now leads to another.
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(found.Fd())))
	if err != nil {
		return image{}, &os.PathError{Op: "open", Path: found.Name(), Err: errors.Unwrap(err)}
	}
	i, err := look(f)
	return i, errors.Join(err, f.Close())
}

func look(f *os.File) (image, error) {
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_SIZE, &st); err != nil {
		return image{}, fmt.Errorf("look at it: %w", err)
	}
	i := image{inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		i.birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	header := make([]byte, min(int64(st.Size), imageinspect.HeaderSize))
	if _, err := f.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return image{}, err
	}
	format, size, err := imageinspect.ProbeFormat(header, int64(st.Size))
	i.size = size
	if format != imageinspect.FormatISO9660 { // a hybrid image is a disk as well
		i.unusable = err
	}
	i.header = qemucmd.DiskFormatRaw
	if bytes.HasPrefix(header, []byte(qcow2Magic)) { // usable or not
		i.header = qemucmd.DiskFormatQCOW2
	}
	return i, nil
}

func (r diskRecord) same(now image) bool {
	return r.Inode == now.inode && (r.Birth == 0 || now.birth == 0 || r.Birth == now.birth)
}

const entryRemedy = "if that is right, remove its entry from \"disks\" in " + recordName + " in the machine's data directory"

// next decides how an image is used now, and what is recorded about it. An earlier decision holds
// for the same file, with two exceptions:
//
//   - a qcow2 image refers to other files only if a program outside of the guest has
//     replaced its content, and is inspected at each start;
//   - a raw image that looks like qcow2 was replaced, unless its guest left it so:
//     opened as raw, what was put there would be written over.
//
// Another file at the same path that looks like another format is refused: an administrator
// converted the image, or restored a copy that a guest wrote to, and only they know which. note is
// for the log.
func (r diskRecord) next(now image, recorded bool) (_ diskRecord, note string, err error) {
	looks := now.header
	switch {
	case recorded && r.same(now) && r.Format == qemucmd.DiskFormatRaw:
		if looks == qemucmd.DiskFormatRaw {
			break
		}
		if r.Header != looks {
			return r, "", fmt.Errorf("is used as a raw disk and has got the header of a %s image since its machine ended: it was replaced in place; %s", looks, entryRemedy)
		}
		note = fmt.Sprintf("has the header of a %s image, which its guest has written: it is used as the raw disk that it is", looks)
	case now.unusable != nil:
		return r, "", now.unusable
	case recorded && looks != r.Format:
		return r, "", fmt.Errorf("was a %s image and was replaced by a file that looks like %s; %s", r.Format, looks, entryRemedy)
	default:
		r = diskRecord{Format: looks}
	}
	r.Inode = now.inode
	if now.birth != 0 {
		r.Birth = now.birth
	}
	return r, note, nil
}

// diskFlags are the flags for opening a disk. They agree with the cache mode that package qemucmd
// sets: devices bypass the host's cache, and QEMU (from 9.1 on) refuses a descriptor that was
// opened otherwise.
func diskFlags(f runnerconfig.DriveFacts, readOnly bool) int {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	if f.Device {
		flags |= unix.O_DIRECT
	}
	return flags
}
