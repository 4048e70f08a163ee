package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// reconnectDelay is how long the guest's requests are held when the exporter of a disk is
// unreachable, in seconds; after that they fail. It is bounded because QEMU also waits for it
// during a guest reset.
const reconnectDelay = 60

// own returns the key of this run of the machine, created on first use, which never leaves the
// process.
func (a *attachments) own() (tunnel.Identity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		i, err := tunnel.NewIdentity()
		if err != nil {
			return i, err
		}
		a.identity = &i
	}
	return *a.identity, nil
}

func (a *attachments) fingerprint() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		return ""
	}
	return a.identity.Fingerprint()
}

func (a *attachments) target(uid string) tunnel.Target {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	for _, w := range a.e.desired.config.Runner.VM.Attachments {
		if w.UID == uid {
			return tunnel.Target{Address: w.Address, Fingerprint: w.Fingerprint}
		}
	}
	return tunnel.Target{}
}

// open returns the socket of a tunnel to an exporter. It checks first that the exporter answers:
// otherwise QEMU, and its guest, would block.
func (a *attachments) open(ctx context.Context, port int, uid string) (socket string, err error) {
	own, err := a.own()
	if err != nil {
		return "", err
	}
	if err := tunnel.Probe(ctx, a.target(uid), own, greetNBD); err != nil {
		return "", err
	}
	a.close(port)
	socket = filepath.Join(a.e.o.Directories.Runtime, qemucmd.AttachedSocketName(port))
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	run, cancel := context.WithCancel(context.Background())
	f := &forwarder{cancel: cancel, done: make(chan struct{})}
	last := "" // retries do not report the same problem again
	go func() {
		defer close(f.done)
		tunnel.Forward(run, l, own, func() tunnel.Target { return a.target(uid) }, func(err error) {
			if text := err.Error(); text != last {
				last = text
				a.e.message(LevelWarning, "attachment %s: %v", uid, err)
			}
		})
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ports == nil {
		a.ports = map[int]*forwarder{}
	}
	a.ports[port] = f
	return socket, nil
}

// greetNBD aborts the negotiation after the greeting (NBD_OPT_ABORT): a server logs a complaint
// about a client that just disconnects.
func greetNBD(c io.ReadWriter) error {
	const begin, option = "NBDMAGIC", "IHAVEOPT"
	greeting := make([]byte, len(begin)+len(option)+2)
	if _, err := io.ReadFull(c, greeting); err != nil {
		return err
	}
	if !strings.HasPrefix(string(greeting), begin+option) {
		return errors.New("it does not speak NBD")
	}
	// NBD_FLAG_C_FIXED_NEWSTYLE; an option, its number and its length.
	_, err := c.Write([]byte("\x00\x00\x00\x01" + option + "\x00\x00\x00\x02" + "\x00\x00\x00\x00"))
	return err
}

func (a *attachments) close(port int) {
	a.mu.Lock()
	f := a.ports[port]
	delete(a.ports, port)
	a.mu.Unlock()
	if f != nil {
		f.cancel()
		<-f.done
	}
}

func (a *attachments) closeAll() {
	for port := range qemucmd.HotPlugPorts {
		a.close(port)
		a.noteImage(port)
	}
}

func (a *attachments) keepImage(port int, d *openedDisk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.images == nil {
		a.images = map[int]*openedDisk{}
	}
	a.images[port] = d
}

func (a *attachments) noteImage(port int) {
	a.mu.Lock()
	d := a.images[port]
	delete(a.images, port)
	a.mu.Unlock()
	if d != nil {
		d.note()
	}
}

func (f *follower) plugDisk(ctx context.Context, s live.PlugDisk) (err error) {
	defer func() {
		if err == nil {
			f.e.message(LevelInfo, "plugged the disk %s, attachment %s", s.Serial, s.UID)
			return
		}
		if cerr := f.closeDisk(ctx, s.Port); cerr != nil {
			f.e.message(LevelWarning, "attachment %s: %v", s.UID, cerr) // retried later
		}
	}()
	node := qemucmd.AttachedNode(s.Port)
	if s.Path != "" {
		err = f.openAttached(ctx, s)
	} else {
		err = f.connectAttached(ctx, s)
	}
	if err != nil {
		return err
	}
	return do(ctx, f.client, qmp.DeviceAdd{
		Driver: "virtio-blk-pci", ID: qemucmd.AttachedID(s.UID), Bus: qemucmd.PortID(s.Port),
		Properties: map[string]any{"drive": node, "serial": s.Serial},
	})
}

func (f *follower) connectAttached(ctx context.Context, s live.PlugDisk) error {
	socket, err := f.e.attachments.open(ctx, s.Port, s.UID)
	if err != nil {
		return err
	}
	err = do(ctx, f.client, qmp.BlockdevAdd{Driver: "nbd", NodeName: qemucmd.AttachedNode(s.Port), Options: map[string]any{
		"server": map[string]any{"type": "unix", "path": socket}, "export": exportName,
		"reconnect-delay": cmp.Or(f.e.o.holds, reconnectDelay), "discard": "unmap",
	}})
	if err != nil {
		return fmt.Errorf("connect with its exporter: %w", err)
	}
	return nil
}

// attachedSets is the base of the descriptor set numbers of attached disks, one for each port.
const attachedSets = 2000

// openAttached has QEMU open the image or block device of a disk. Lock and record are those of an
// exporter, so that an exporter and a machine see the same disk, but never at the same time.
func (f *follower) openAttached(ctx context.Context, s live.PlugDisk) error {
	d := &openedDisk{path: s.Path, volumes: f.e.o.Volumes, message: f.e.message}
	image, facts, err := d.open()
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	defer image.Close()
	set := attachedSets + s.Port
	if _, err := answer(ctx, f.client, qmp.AddFD{FDSetID: &set, Opaque: s.Path}, qmp.WithFile(image)); err != nil {
		return err
	}
	name := qemucmd.FDSetName(set)
	f.e.opened.Store(name, s.Path)
	f.e.attachments.keepImage(s.Port, d)
	for _, add := range diskNodes(name, qemucmd.AttachedFileNode(s.Port), qemucmd.AttachedNode(s.Port), facts) {
		if err := do(ctx, f.client, add); err != nil {
			return f.e.readable(err)
		}
	}
	if s.GrowTo > d.has && !facts.Device {
		// A disk of the old size is better than none.
		if err := do(ctx, f.client, qmp.BlockResize{NodeName: qemucmd.AttachedNode(s.Port), Size: live.WholeSectors(s.GrowTo)}); err != nil {
			f.e.message(LevelWarning, "the disk %s does not grow: %v", s.Serial, f.e.readable(err))
		} else {
			f.e.message(LevelInfo, "the disk %s has grown to %s; the guest may enlarge its partitions", s.Serial, runnerconfig.Bytes(s.GrowTo))
		}
	}
	return nil
}

// closeDisk returns after QEMU has flushed its caches of the disk.
func (f *follower) closeDisk(ctx context.Context, port int) error {
	for _, node := range []string{qemucmd.AttachedNode(port), qemucmd.AttachedFileNode(port)} {
		err := do(ctx, f.client, qmp.BlockdevDel{NodeName: node})
		if err != nil && !strings.Contains(err.Error(), "Failed to find") {
			return err
		}
	}
	f.forget(ctx, attachedSets+port)
	f.e.attachments.close(port)
	f.e.attachments.noteImage(port)
	return nil
}

func (f *follower) unplugDisk(ctx context.Context, uid string) error {
	err := do(ctx, f.client, qmp.DeviceDel{ID: qemucmd.AttachedID(uid)})
	if err == nil || errors.Is(err, qmp.ErrDeviceNotFound) || strings.Contains(err.Error(), "already in the process of unplug") {
		return nil
	}
	return err
}

func (f *follower) attachmentKey(in desired) string {
	if len(in.config.Runner.VM.Attachments) > 0 {
		if _, err := f.e.attachments.own(); err != nil {
			f.e.message(LevelError, "%v", err)
		}
	}
	return f.e.attachments.fingerprint()
}
