package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/transfer"
)

const downloadCommand = "download"

const downloadUsage = `Usage: vmop-runner download [flags]

Gives the content of one disk to somebody who downloads it and has the same key,
until that one says that it is whole, or nobody has gone on with it for a while:
as the pod beside a VirtualDisk or VirtualImage does. The disk is only read, and
not while a machine on this node writes to it. There is no machine in this process.

Flags:
`

type downloadSettings struct {
	path, format, certificates, terminationLog string
	port                                       int
	wait                                       time.Duration
}

func parseDownload(args []string, stdout io.Writer) (downloadSettings, error) {
	var s downloadSettings
	f := flag.NewFlagSet("vmop-runner download", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.path, "image", "", "`path` of the file or block device")
	f.StringVar(&s.format, "format", "", "its `format`: raw, qcow2, or iso for the image of a CD")
	f.StringVar(&s.certificates, "certificates", "", "`directory` with tls.crt and tls.key, the key of both ends")
	f.StringVar(&s.terminationLog, "termination-log", "", "write what became of it to this `file` (default "+terminationLog+" in a container)")
	f.IntVar(&s.port, "port", runnerconfig.TransferPort, "`port` of the loopback interface to listen on")
	f.DurationVar(&s.wait, "wait", 10*time.Minute, "`how long` nobody may go on with the download")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, downloadUsage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return s, err
	}
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q; see vmop-runner download -help", f.Arg(0))
	case s.path == "" || s.certificates == "":
		err = errors.New("-image and -certificates are needed; see vmop-runner download -help")
	case s.format != "raw" && s.format != "qcow2" && s.format != runnerconfig.FormatISO:
		err = fmt.Errorf("-format %q: want raw, qcow2 or iso", s.format)
	case s.wait <= 0:
		err = fmt.Errorf("-wait %v: want more than 0", s.wait)
	}
	return s, err
}

func giveDownload(args []string, stdout, stderr io.Writer) int {
	s, err := parseDownload(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return runner.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		return runner.ExitUsage
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer runner.OnStopSignals(cancel)()
	size, err := s.give(ctx, func(text string) { fmt.Fprintln(stdout, text) })
	last := runnerconfig.Imported{Format: s.format, Size: size}
	if err != nil {
		last = runnerconfig.Imported{Error: err.Error()}
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
	} else {
		fmt.Fprintln(stdout, "the download is whole")
	}
	if werr := writeTermination(s.terminationLog, last.Encode()); werr != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", werr)
	}
	if err != nil {
		return runner.ExitStart
	}
	return runner.ExitOK
}

func (s downloadSettings) give(ctx context.Context, say func(string)) (int64, error) {
	own, err := tunnel.LoadIdentity(filepath.Join(s.certificates, "tls.crt"), filepath.Join(s.certificates, "tls.key"))
	if err != nil {
		return 0, err
	}
	disk, err := os.OpenFile(s.path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer disk.Close()
	size, err := diskSize(disk)
	if err != nil {
		return 0, err
	}
	if err := lockAsReader(disk); err != nil {
		return 0, err
	}
	// Only the API server's port forwarding connects to the loopback address.
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return 0, err
	}
	say(fmt.Sprintf("%d bytes of %s wait for a download, for %v", size, s.format, s.wait))
	var told time.Time
	server := transfer.Server{
		Content: disk, Size: size, Format: s.format, Own: own, Wait: s.wait, Stall: transferStall,
		Report: func(done, total int64) {
			if time.Since(told) >= tellImage {
				told = time.Now()
				say(fmt.Sprintf("downloaded, %d of %d MiB", done>>20, total>>20))
			}
		},
	}
	if err := server.Serve(ctx, few(l)); err != nil {
		return 0, fmt.Errorf("download: %w", err)
	}
	return size, nil
}

func diskSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case info.Mode().IsRegular():
		return info.Size(), nil
	case info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0:
		return f.Seek(0, io.SeekEnd)
	}
	return 0, fmt.Errorf("%s is neither a file nor a block device", f.Name())
}

var errWritten = errors.New("a machine on this node writes to it")

// QEMU's locks of an image (block/file-posix.c): a writer holds the first byte; a process that
// excludes other writers, the second.
const (
	lockWriters   = 100 + 1
	lockNoWriters = 200 + 1
)

// lockAsReader keeps any QEMU from writing to a file while it is open, and fails if one already
// does. The operator lets no machine start meanwhile; the lock holds even if the operator is
// mistaken. File systems without such locks have none, nor do block devices, for which each pod has
// its own device node.
func lockAsReader(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: lockNoWriters, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", filepath.Base(f.Name()), errWritten) // it is about to
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP):
		return nil
	case err != nil:
		return fmt.Errorf("lock %s: %w", filepath.Base(f.Name()), err)
	}
	lock = unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: lockWriters, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return fmt.Errorf("lock %s: %w", filepath.Base(f.Name()), err)
	}
	if lock.Type != unix.F_UNLCK {
		return fmt.Errorf("%s: %w", filepath.Base(f.Name()), errWritten)
	}
	return nil
}
