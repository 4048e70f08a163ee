package imagesource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/imageinspect"
)

const (
	// convertMemory and convertTime bound qemu-img, in bytes of address space and time.
	convertMemory = 4 << 30
	convertTime   = 2 * time.Hour
	// convertSays is how much of its error message is kept, in bytes.
	convertSays = 2000
)

// convert converts an image with a disk of size bytes to qcow2. qemu-img is passed the format,
// opens no other file, and is limited.
func (f *fetch) convert(ctx context.Context, from string, format imageinspect.Format, size int64) error {
	source, err := node(from, format, 0, 0)
	if err != nil {
		return err
	}
	to, err := filepath.Abs(f.converted()) // a name with a colon would be taken for a protocol
	if err != nil {
		return err
	}
	// A qcow2 image has at most a few per cent beside its data.
	file := uint64(size) + uint64(size)/8 + 64<<20
	return qemuImg(ctx, format, file, size, f.o.meter(Converting), "-O", "qcow2", source, to)
}

// WriteOver writes the content that a guest sees of an image, from a position to an end, over the
// same part of a file or block device, which must be large enough and may have any content: zeros
// are written too. The image must be a qcow2 one that [imageinspect.ProbeFormat] accepts, of the
// same size. The data is on the storage once the caller has synced the file. report, unless nil, is
// called with the progress.
func WriteOver(ctx context.Context, image string, at, end int64, to *os.File, report func(done, total int64)) error {
	if at >= end {
		return nil
	}
	size := end - at
	source, err := node(image, imageinspect.FormatQcow2, at, size)
	if err != nil {
		return err
	}
	info, err := to.Stat()
	if err != nil {
		return err
	}
	driver := "file"
	if info.Mode()&fs.ModeDevice != 0 {
		driver = "host_device"
	}
	path, err := filepath.Abs(to.Name())
	if err != nil {
		return err
	}
	target, err := json.Marshal(map[string]any{"driver": "raw", "offset": at, "size": size, "file": map[string]any{"driver": driver, "filename": path}})
	if err != nil {
		return err
	}
	if report == nil {
		report = func(int64, int64) {}
	}
	return qemuImg(ctx, imageinspect.FormatQcow2, uint64(end), size, report, "-n", "-O", "raw", source, "json:"+string(target))
}

// Convert converts an image between raw and qcow2, to a path that must not exist. The new file
// contains nothing but the disk's data. A qcow2 image is refused unless [imageinspect.ProbeFormat]
// accepts it; a raw one is raw, whatever it looks like. After an error no file is left. report is
// called with the progress.
func Convert(ctx context.Context, from string, format imageinspect.Format, to string, want imageinspect.Format, report func(done, total int64)) error {
	size, err := diskIn(from, format)
	if err != nil {
		return err
	}
	source, err := node(from, format, 0, 0)
	if err != nil {
		return err
	}
	if to, err = filepath.Abs(to); err != nil { // a name with a colon would be taken for a protocol
		return err
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "convert", Path: to, Err: fs.ErrExist}, err)
	}
	// A qcow2 image has at most a few per cent beside its data.
	file := uint64(size) + uint64(size)/8 + 64<<20
	if err := qemuImg(ctx, format, file, size, report, "-O", string(want), source, to); err != nil {
		if rerr := os.Remove(to); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	return nil
}

func diskIn(path string, format imageinspect.Format) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || format == imageinspect.FormatRaw {
		return max(info.Size(), 0), err
	}
	header := make([]byte, min(info.Size(), imageinspect.HeaderSize))
	if _, err := f.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	found, size, err := imageinspect.ProbeFormat(header, info.Size())
	if err == nil && found != format {
		err = fmt.Errorf("it is %s, and not %s", found, format)
	}
	return size, err
}

// node describes an image for QEMU, or size bytes of its disk from a position on. It fixes the
// format, and excludes a backing file.
func node(path string, format imageinspect.Format, at, size int64) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	n := map[string]any{"driver": string(format), "backing": nil, "file": map[string]any{"driver": "file", "filename": path}}
	if size > 0 {
		n = map[string]any{"driver": "raw", "offset": at, "size": size, "file": n}
	}
	data, err := json.Marshal(n)
	return "json:" + string(data), err
}

// qemuImg runs qemu-img convert on an image with a disk of size bytes. It writes no file of more
// than file bytes.
func qemuImg(ctx context.Context, format imageinspect.Format, file uint64, size int64, report func(done, total int64), args ...string) error {
	report(0, size)
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		return fmt.Errorf("a %s image is converted by qemu-img, which is not installed (Debian: package qemu-utils): %w", format, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, convertTime, fmt.Errorf("qemu-img took longer than %v", convertTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, append([]string{"convert", "-p"}, args...)...)
	cmd.Env = []string{"LC_ALL=C"}
	var said beginning
	cmd.Stdout, cmd.Stderr = &percents{size: size, report: report}, &said
	// A runner that is the first process of a pod reaps what leads no group as an orphan.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the parent's thread ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	limits := map[int]uint64{unix.RLIMIT_AS: convertMemory, unix.RLIMIT_FSIZE: file, unix.RLIMIT_CORE: 0}
	var lerr error
	for what, n := range limits {
		if err := unix.Prlimit(cmd.Process.Pid, what, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			lerr = errors.Join(lerr, fmt.Errorf("limit qemu-img: %w", err))
		}
	}
	if lerr != nil {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case lerr != nil:
		return lerr
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("convert it from %s: %w: %s", format, err, strings.TrimSpace(string(said)))
	}
	return nil
}

type beginning []byte

func (b *beginning) Write(text []byte) (int, error) {
	*b = append(*b, text[:min(len(text), convertSays-len(*b))]...)
	return len(text), nil
}

// percents parses the progress of qemu-img: "    (48.39/100%)\r".
type percents struct {
	size   int64
	report func(done, total int64)
	line   []byte
}

func (p *percents) Write(text []byte) (int, error) {
	for _, c := range text {
		switch {
		case c == '\r' || c == '\n':
			number, _, _ := strings.Cut(strings.TrimLeft(string(p.line), " ("), "/")
			if done, err := strconv.ParseFloat(number, 64); err == nil && done >= 0 && done <= 100 {
				p.report(int64(done/100*float64(p.size)), p.size)
			}
			p.line = p.line[:0]
		case len(p.line) < 64: // a longer line is no progress
			p.line = append(p.line, c)
		}
	}
	return len(text), nil
}
