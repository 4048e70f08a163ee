package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const (
	// exportName is that of a disk in the protocol (NBD): there is one only.
	exportName = "disk"
	// exportRecord is the file beside an image in which it is recorded what it was when
	// it was first exported, as machine.json does for the disks of a machine.
	exportRecord = ".vmop-export.json"
	// exportSocket and exportMonitor are the sockets of the QEMU that exports.
	exportSocket  = "nbd.sock"
	exportMonitor = "export.sock"
	// exportSet is the set of descriptors with the image.
	exportSet = 1
	// exportDeadline bounds the wait for the end of an export whose client has gone: its
	// last writes come to their end first.
	exportDeadline = 5 * time.Minute
)

// ExportOptions say what [Export] exports, and to whom.
type ExportOptions struct {
	// QEMU is the executable of the system emulator, which serves the disk; there is no
	// machine in it.
	QEMU string
	// Path is an image, raw or qcow2, or a block device.
	Path string
	// Size in bytes has an image that has never been there made, empty and raw; 0 makes
	// none.
	Size int64
	// Runtime is a directory of this export's alone, for sockets. It must be there.
	Runtime string
	// Volumes are directories whose content others may have written; see
	// [Options.Volumes].
	Volumes []string
	// Own is the key that the export is known by, and Client the fingerprint of the only
	// one who may use it.
	Own    tunnel.Identity
	Client string
	// Linger is how long a client that is there is served on after the end was asked for:
	// its guest may be shutting down.
	Linger time.Duration
	// Reporter is told what happens; nil tells nobody.
	Reporter Reporter
}

// Export exports a disk to one client, by NBD within TLS, on a listener that it closes,
// until ctx ends and the client has gone, or [ExportOptions.Linger] has passed. The error
// says why it could not begin, or did not end well.
//
// Nobody else writes the disk meanwhile: QEMU locks an image, and a block device is
// opened for this process alone, which also refuses one with a file system that is
// mounted. What a client has not been told to be written may be lost; a flush that it was
// answered is on the storage. Its writes have ended before a later connection is served.
func Export(ctx context.Context, l net.Listener, o ExportOptions) error {
	x := &exporter{o: o}
	if o.Reporter == nil {
		x.o.Reporter = Reporters(nil)
	}
	if err := x.run(ctx, l); err != nil {
		return errors.Join(fmt.Errorf("export %s: %w", o.Path, err), closedAlready(l.Close()))
	}
	return nil
}

func closedAlready(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

type exporter struct {
	o      ExportOptions
	client *qmp.Client
	qemu   *child

	mu   sync.Mutex
	busy int
	idle chan struct{} // closed while nobody is served
}

func (x *exporter) message(level Level, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.o.Reporter.Message(Message{Time: time.Now(), Level: level, Source: "export", Text: fmt.Sprintf(format, args...)})
}

func (x *exporter) run(ctx context.Context, l net.Listener) error {
	image, facts, err := x.open()
	if err != nil {
		return err
	}
	defer x.note()
	begin, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	err = x.start(begin, image, facts)
	if cerr := image.Close(); err == nil {
		err = cerr
	}
	if err != nil && ctx.Err() != nil {
		return x.end() // nobody was served yet
	}
	if err != nil {
		return errors.Join(x.explained(err), x.end())
	}
	x.message(LevelInfo, "exporting %s on %s", x.o.Path, l.Addr())

	x.idle = make(chan struct{})
	close(x.idle)
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s := tunnel.Server{
			Own: x.o.Own, Client: x.o.Client, Open: x.connect, Busy: x.occupied,
			Problem: func(err error) { x.message(LevelWarning, "%v", err) },
		}
		s.Serve(serving, l)
	}()
	select {
	case <-ctx.Done():
		x.linger()
	case <-x.qemu.done:
	}
	lost := x.qemu.ended()
	stop()
	<-served
	if lost {
		return errors.Join(errors.New(x.qemu.describe()), x.end())
	}
	return x.end()
}

// explained replaces an error that only follows from the end of QEMU.
func (x *exporter) explained(err error) error {
	if x.qemu == nil {
		return err
	}
	wait, cancel := context.WithTimeout(context.Background(), helperGrace)
	defer cancel()
	if !refusal(err) && x.qemu.wait(wait) == nil {
		return errors.New(x.qemu.describe())
	}
	return err
}

// linger waits until nobody is served any more.
func (x *exporter) linger() {
	x.mu.Lock()
	idle := x.idle
	x.mu.Unlock()
	select {
	case <-idle:
		return
	default:
		x.message(LevelInfo, "serving the client on for up to %v", x.o.Linger)
	}
	t := time.NewTimer(x.o.Linger)
	defer t.Stop()
	select {
	case <-idle:
	case <-x.qemu.done:
	case <-t.C:
		x.message(LevelWarning, "the client is still there, and is served no more")
	}
}

func (x *exporter) occupied(is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if is {
		if x.busy++; x.busy == 1 {
			x.idle = make(chan struct{})
		}
		return
	}
	if x.busy--; x.busy == 0 {
		close(x.idle)
	}
}

// finder finds files as an engine does.
func (x *exporter) finder() *Engine { return &Engine{o: Options{Volumes: x.o.Volumes}} }

// open opens the disk, and makes it where it has never been.
func (x *exporter) open() (*os.File, runnerconfig.DriveFacts, error) {
	var facts runnerconfig.DriveFacts
	path := x.o.Path
	found, err := x.finder().find(path)
	if errors.Is(err, fs.ErrNotExist) && x.o.Size > 0 {
		if found, err = x.create(); err != nil {
			return nil, facts, err
		}
	}
	if err != nil {
		return nil, facts, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, facts, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		facts.Device = true
		if err := checkDevice(path, info); err != nil {
			return nil, facts, err
		}
		f, err := reopen(found, diskFlags(facts, false)|unix.O_EXCL)
		if errors.Is(err, unix.EBUSY) {
			err = errors.New("it is mounted, or exported by somebody else")
		}
		return f, facts, err
	default:
		return nil, facts, fmt.Errorf("it is neither a file nor a block device: %s", mode.Type())
	}
	now, err := lookAt(found)
	if err != nil {
		return nil, facts, err
	}
	before, recorded, err := x.record()
	if err != nil {
		return nil, facts, err
	}
	rec, note, err := before.next(now, recorded)
	if err != nil {
		return nil, facts, errors.New(strings.ReplaceAll(err.Error(), entryRemedy, "if that is right, remove "+exportRecord+" beside it"))
	}
	if note != "" {
		x.message(LevelWarning, "the disk image %s %s", path, note)
	}
	if err := x.keep(rec); err != nil {
		return nil, facts, err
	}
	facts.Format = rec.Format
	f, err := reopen(found, diskFlags(facts, false))
	if err != nil {
		return nil, facts, err
	}
	// QEMU's own lock is there only while somebody is served. This one is held by QEMU as
	// well, which inherits the file.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("somebody else exports it and has the lock")
		}
		return nil, facts, errors.Join(err, f.Close())
	}
	return f, facts, nil
}

// create makes an image that has never been there.
func (x *exporter) create() (*os.File, error) {
	if _, was, err := x.record(); err != nil {
		return nil, err
	} else if was {
		return nil, fmt.Errorf("it was there and is missing: put it back; if a new, empty disk is wanted, remove %s beside it", exportRecord)
	}
	if _, err := createImage(x.o.Path, x.o.Size); err != nil {
		return nil, err
	}
	x.message(LevelInfo, "created the disk image %s of %s", x.o.Path, runnerconfig.Bytes(x.o.Size))
	return x.finder().find(x.o.Path)
}

func (x *exporter) recordPath() string { return filepath.Join(filepath.Dir(x.o.Path), exportRecord) }

// record reads what is recorded of the image.
func (x *exporter) record() (rec diskRecord, recorded bool, err error) {
	f, err := x.finder().find(x.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, err
	}
	defer f.Close()
	if err := mustBeFile(f); err != nil {
		return rec, false, fmt.Errorf("%s: %w", x.recordPath(), err)
	}
	r, err := reopen(f, os.O_RDONLY)
	if err != nil {
		return rec, false, fmt.Errorf("%s: %w", x.recordPath(), err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&rec); err != nil {
		return rec, false, fmt.Errorf("%s: %w", x.recordPath(), err)
	}
	return rec, true, nil
}

func (x *exporter) keep(rec diskRecord) error {
	data, err := json.Marshal(rec)
	if err == nil {
		err = atomicfile.Replace(x.recordPath(), append(data, '\n'))
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(x.recordPath()))
	}
	if err != nil {
		return fmt.Errorf("record what the image is: %w", err)
	}
	return nil
}

// note records what a raw image looks like when nobody writes it any more.
func (x *exporter) note() {
	rec, recorded, err := x.record()
	if err != nil || !recorded || rec.Format != qemucmd.DiskFormatRaw {
		return
	}
	f, err := x.finder().find(x.o.Path)
	if err != nil {
		return
	}
	now, err := lookAt(f)
	_ = f.Close() // it was only read
	if err == nil && rec.same(now) && rec.Header != now.header {
		rec.Header = now.header
		err = x.keep(rec)
	}
	if err != nil {
		x.message(LevelWarning, "%v", err)
	}
}

// start starts a QEMU without a machine and has it open the disk.
func (x *exporter) start(ctx context.Context, image *os.File, facts runnerconfig.DriveFacts) error {
	for _, name := range []string{exportSocket, exportMonitor} {
		if err := os.Remove(filepath.Join(x.o.Runtime, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	path := filepath.Join(x.o.Runtime, exportMonitor)
	monitor, err := listenFile(path)
	if err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	args := []string{
		"-machine", "none", "-nodefaults", "-no-user-config", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d,server=on,wait=off", monitorFD), "-mon", "chardev=monitor,mode=control",
		"-add-fd", fmt.Sprintf("fd=%d,set=%d", monitorFD+1, exportSet),
	}
	x.qemu, err = startChild("qemu", x.o.QEMU, args, []*os.File{monitor, image}, func(source, text string) { x.message(LevelInfo, "%s: %s", source, text) })
	if err = errors.Join(err, monitor.Close()); err != nil {
		return err
	}
	if x.client, err = qmp.Dial(ctx, path, qmp.Options{}); err != nil {
		return err
	}
	const file = "image"
	below := qmp.BlockdevAdd{Driver: "file", NodeName: file, Options: map[string]any{
		"filename": qemucmd.FDSetName(exportSet), "locking": "on", "discard": "unmap",
	}}
	if facts.Device {
		below.Driver = "host_device"
		below.Options["cache"] = map[string]any{"direct": true}
		delete(below.Options, "locking")
	}
	above := qmp.BlockdevAdd{Driver: "raw", NodeName: exportName, Options: map[string]any{"file": file, "discard": "unmap"}}
	if facts.Format == qemucmd.DiskFormatQCOW2 {
		above.Driver = string(facts.Format)
		above.Options["backing"] = nil // it was looked at, and has none
	}
	for _, add := range []qmp.BlockdevAdd{below, above} {
		if err := do(ctx, x.client, add); err != nil {
			return err
		}
	}
	return do(ctx, x.client, nbdServerStart{Addr: unixAddress(filepath.Join(x.o.Runtime, exportSocket))})
}

// connect exports the disk for one connection. Each has an export of its own: only when
// that is gone have the writes of an earlier one ended, of which a client that has come
// back believes that they never were.
func (x *exporter) connect(ctx context.Context) (net.Conn, func(), error) {
	deleted := x.client.Subscribe(16, "BLOCK_EXPORT_DELETED")
	err := do(ctx, x.client, blockExportAdd{Type: "nbd", ID: exportName, NodeName: exportName, Name: exportName, Writable: true})
	if err != nil {
		deleted.Close()
		return nil, nil, err
	}
	closed := func() {
		defer deleted.Close()
		ctx, cancel := context.WithTimeout(context.Background(), exportDeadline)
		defer cancel()
		err := do(ctx, x.client, blockExportDel{ID: exportName, Mode: "hard"})
		if err == nil {
			_, err = deleted.Next(ctx)
		}
		if err != nil && !x.qemu.ended() {
			x.message(LevelError, "the disk may still be written to for an earlier connection: %v", err)
			x.qemu.signal(sigKILL) // nobody may be served beside that
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(x.o.Runtime, exportSocket))
	if err != nil {
		closed()
		return nil, nil, err
	}
	return conn, closed, nil
}

// end ends QEMU, which writes back what it has.
func (x *exporter) end() error {
	if x.qemu == nil {
		return nil
	}
	var errs []error
	if x.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), quitGrace)
		if err := do(ctx, x.client, qmp.Quit{}); err != nil && !x.qemu.ended() {
			x.qemu.signal(sigTERM)
		}
		cancel()
	} else {
		x.qemu.signal(sigTERM)
	}
	for _, grace := range []time.Duration{exportDeadline, killGrace} {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		err := x.qemu.wait(ctx)
		cancel()
		if err == nil {
			errs = nil
			break
		}
		errs = append(errs, err)
		x.qemu.signal(sigKILL)
	}
	if x.client != nil {
		errs = append(errs, x.client.Close())
	}
	return errors.Join(errs...)
}

// The commands of QEMU's own export of disks; no other part of the program has one.
type (
	nbdServerStart struct {
		Addr map[string]any `json:"addr"`
	}
	blockExportAdd struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		NodeName string `json:"node-name"`
		Name     string `json:"name"`
		Writable bool   `json:"writable"`
	}
	blockExportDel struct {
		ID   string `json:"id"`
		Mode string `json:"mode"`
	}
)

// QMP implements [qmp.Command].
func (nbdServerStart) QMP() (string, qmp.None) { return "nbd-server-start", qmp.None{} }

// QMP implements [qmp.Command].
func (blockExportAdd) QMP() (string, qmp.None) { return "block-export-add", qmp.None{} }

// QMP implements [qmp.Command].
func (blockExportDel) QMP() (string, qmp.None) { return "block-export-del", qmp.None{} }

// unixAddress is a SocketAddressLegacy of QEMU's.
func unixAddress(path string) map[string]any {
	return map[string]any{"type": "unix", "data": map[string]any{"path": path}}
}
