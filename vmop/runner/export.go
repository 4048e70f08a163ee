package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const (
	exportName    = "disk"
	exportSocket  = "nbd.sock"
	exportMonitor = "export.sock"
	exportSet     = 1
	// exportDeadline bounds the wait for the end of an export after its client's disconnection: its
	// last writes complete first.
	exportDeadline = 5 * time.Minute
)

// ExportOptions are what [Export] exports, and to which client.
type ExportOptions struct {
	// QEMU is the executable of the system emulator, which serves the disk without a machine.
	QEMU string
	// Path is an image, raw or qcow2, or a block device.
	Path string
	// Size is the size in bytes of the empty raw image to create if none ever existed; 0 creates
	// none.
	Size int64
	// Runtime is an existing directory for the sockets of this export alone.
	Runtime string
	// Volumes are directories whose content others may have written; see [Options.Volumes].
	Volumes []string
	// Own is the export's key, and Client the fingerprint of the only client that may use it.
	Own    tunnel.Identity
	Client string
	// Linger is how long a connected client is still served after ctx has ended: its guest may be
	// shutting down.
	Linger time.Duration
	// Reporter receives messages; it may be nil.
	Reporter Reporter
}

// Export exports a disk to one client, by NBD within TLS, on a listener that it closes, until ctx
// ends and the client has disconnected, or [ExportOptions.Linger] has passed. The error is why it
// could not begin, or did not end well.
//
// No other process writes the disk meanwhile: QEMU locks an image, and a block device is opened
// exclusively, which also refuses one with a mounted file system. Writes that were not acknowledged
// may be lost; those before an acknowledged flush are on stable storage. A client's writes have
// completed before a later connection is served.
func Export(ctx context.Context, l net.Listener, o ExportOptions) error {
	x := &exporter{o: o}
	if o.Reporter == nil {
		x.o.Reporter = Reporters(nil)
	}
	err := x.run(ctx, l)
	if err != nil {
		err = fmt.Errorf("export %s: %w", o.Path, err)
	}
	return errors.Join(err, closedAlready(l.Close()))
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
	idle chan struct{} // closed while no client is served
}

func (x *exporter) message(level Level, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.o.Reporter.Message(Message{Time: time.Now(), Level: level, Source: "export", Text: fmt.Sprintf(format, args...)})
}

func (x *exporter) run(ctx context.Context, l net.Listener) error {
	disk := &openedDisk{path: x.o.Path, size: x.o.Size, volumes: x.o.Volumes, message: x.message}
	image, facts, err := x.open(ctx, disk)
	if err != nil && ctx.Err() != nil {
		return nil // nothing has begun
	}
	if err != nil {
		return err
	}
	defer disk.note()
	begin, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	err = x.start(begin, image, facts)
	if cerr := image.Close(); err == nil {
		err = cerr
	}
	if err != nil && ctx.Err() != nil {
		return x.end() // no client was served yet
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

func (x *exporter) open(ctx context.Context, disk *openedDisk) (image *os.File, facts runnerconfig.DriveFacts, err error) {
	err = whileBusy(ctx, func(err error) {
		x.message(LevelInfo, "waiting up to %v for %s: %v", orphanGrace, x.o.Path, err)
	}, func() (err error) {
		image, facts, err = disk.open()
		return err
	})
	return image, facts, err
}

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
		// It waits for us for the reason that it does with a machine's monitor: see package qemucmd.
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d,server=on,wait=on", monitorFD), "-mon", "chardev=monitor,mode=control",
		"-add-fd", fmt.Sprintf("fd=%d,set=%d", monitorFD+1, exportSet),
	}
	x.qemu, err = startChild("qemu", x.o.QEMU, args, []*os.File{monitor, image}, func(source, text string) { x.message(LevelInfo, "%s: %s", source, text) })
	if err = errors.Join(err, monitor.Close()); err != nil {
		return err
	}
	if x.client, err = qmp.Dial(ctx, path, qmp.Options{}); err != nil {
		return err
	}
	for _, add := range diskNodes(qemucmd.FDSetName(exportSet), "image", exportName, facts) {
		if err := do(ctx, x.client, add); err != nil {
			return err
		}
	}
	return do(ctx, x.client, nbdServerStart{Addr: unixAddress(filepath.Join(x.o.Runtime, exportSocket))})
}

// connect exports the disk for one connection. Each has an export of its own: only its deletion
// ensures that an earlier connection's writes, which a reconnected client takes for lost, have
// completed.
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
			x.qemu.signal(sigKILL) // no other client may be served beside that one
		}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(x.o.Runtime, exportSocket))
	if err != nil {
		closed()
		return nil, nil, err
	}
	return conn, closed, nil
}

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

// QEMU's commands for exports, which nothing else uses.
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

func unixAddress(path string) map[string]any {
	return map[string]any{"type": "unix", "data": map[string]any{"path": path}}
}
