package imagesource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
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
	// convertSays is how much of its message is kept, in bytes.
	convertSays = 2000
)

// convert makes a qcow2 image of one of another format, with a disk of size bytes.
// QEMU's tool gets the format, opens no other file, and is limited.
func (f *fetch) convert(ctx context.Context, from string, format imageinspect.Format, size int64) error {
	f.o.meter(Converting)(0, 0)
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		return fmt.Errorf("a %s image is converted by qemu-img, which is not installed (Debian: package qemu-utils): %w", format, err)
	}
	var paths [2]string
	for i, p := range []string{from, f.converted()} {
		if paths[i], err = filepath.Abs(p); err != nil { // a name with a colon would be a protocol's
			return err
		}
	}
	source, err := json.Marshal(map[string]any{"driver": string(format), "backing": nil, "file": map[string]any{"driver": "file", "filename": paths[0]}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, convertTime, fmt.Errorf("qemu-img took longer than %v", convertTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "convert", "-q", "-O", "qcow2", "json:"+string(source), paths[1])
	cmd.Env = []string{"LC_ALL=C"}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // with whose end the kernel would kill it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	// A qcow2 image has at most some per cent beside its data.
	file := uint64(size) + uint64(size)/8 + 64<<20
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
		text := strings.TrimSpace(said.String())
		return fmt.Errorf("convert it from %s: %w: %s", format, err, text[:min(len(text), convertSays)])
	}
	return nil
}
