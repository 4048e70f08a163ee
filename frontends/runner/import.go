package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// importDisk makes a disk in a pod that does nothing else, and writes the result as its termination
// message.
func importDisk(text, terminationLog string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	job, err := runnerconfig.ParseImport(text)
	out := runnerconfig.Imported{Final: true}
	if err == nil {
		var shown shownProgress
		end := shown.serve(job.ProgressPort, stderr)
		out, err = makeDisk(ctx, job, func(text string) { fmt.Fprintln(stdout, text) }, shown.set)
		end()
	}
	if err != nil {
		out = runnerconfig.Imported{Error: err.Error(), Final: out.Final}
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
	} else {
		fmt.Fprintf(stdout, "the disk is there: %s, %d bytes\n", out.Format, out.Size)
	}
	if werr := writeTermination(terminationLog, out.Encode()); werr != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", werr)
	}
	if err != nil {
		return runner.ExitStart
	}
	return runner.ExitOK
}

// makeDisk makes a disk where none exists. An existing file is left alone: it is the job's own if
// the record says so, and otherwise unrelated. With an error, Final reports whether another attempt
// would fail likewise.
func makeDisk(ctx context.Context, job runnerconfig.Import, progress func(string), watch func(runnerconfig.ImportProgress)) (out runnerconfig.Imported, err error) {
	if job.Restored != nil {
		out, err = adoptRestored(ctx, job, watch)
		out.Final = err != nil && final(err)
		return out, err
	}
	if job.Device {
		out, err = makeOnDevice(ctx, job, progress, watch)
		out.Final = err != nil && final(err)
		return out, err
	}
	if job.Copy != nil && job.Copy.CloneOf != "" {
		adopted, err := adoptClone(ctx, job, watch)
		if err != nil {
			return runnerconfig.Imported{Final: final(err)}, err
		}
		if adopted {
			out, err = probeDisk(ctx, job, watch)
			out.Cloned = true
			return out, err
		}
	}
	if _, err := os.Lstat(job.File); err == nil {
		if !ownDisk(job) {
			return runnerconfig.Imported{Final: true}, fmt.Errorf("there is a file %s already that this disk was not made by: it is left alone", filepath.Base(job.File))
		}
		return probeDisk(ctx, job, watch)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	making := job.File + ".import"
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	switch {
	case job.Copy != nil:
		err = copyDisk(ctx, job, making, progress, watch)
	case job.Served != nil:
		err = fetchServed(ctx, job, making, progress, watch)
	case job.Upload != nil:
		err = uploadImage(ctx, job, making, progress, watch)
	case job.Image == nil:
		_, err = atomicfile.Create(making, func(f *os.File) error { return f.Truncate(filecopy.Aligned(job.Size)) })
	default:
		err = fetchImage(ctx, runnerconfig.Drive{File: making, Size: runnerconfig.Bytes(job.Size), Image: job.Image}, job.Keep, progress, watch)
	}
	if err != nil {
		out.Final = final(err)
		return out, err
	}
	if !job.Keep {
		if err := enlarge(making, job); err != nil {
			return out, err
		}
	}
	if err := writeRecord(job); err != nil {
		return out, err
	}
	if err := errors.Join(renameNew(making, job.File), atomicfile.SyncDir(filepath.Dir(job.File))); err != nil {
		return out, err
	}
	return probeDisk(ctx, job, watch)
}

func final(err error) bool {
	return slices.ContainsFunc([]error{imagesource.ErrChecksum, imagesource.ErrTooLarge, imagesource.ErrRedirect, errSmaller, errOtherFormat, errOccupied, errNotRestored, errRefusedDisk, errHalfMade}, func(e error) bool { return errors.Is(err, e) })
}

// renameNew renames a file and never replaces an existing one.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not supported by this file system
		return errors.Join(os.Link(from, to), os.Remove(from))
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func ownDisk(job runnerconfig.Import) bool { return recorded(job) == job.Disk }
