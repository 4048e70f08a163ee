package tap

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// DefaultBridge is the bridge of who names none, as qemu-bridge-helper has it.
const DefaultBridge = "br0"

// maxQueues is the most queues that an interface can have (Linux,
// MAX_TAP_QUEUES).
const maxQueues = 256

// tunDevice is what interfaces are made with.
const tunDevice = "/dev/net/tun"

// ErrNotPermitted is the error when this process may not make an interface.
var ErrNotPermitted = errors.New("making a tap interface needs CAP_NET_ADMIN")

// Device is an open interface.
type Device struct {
	// Name is that of the interface on the host.
	Name string
	// MTU is that of its bridge, in bytes.
	MTU int
	// Queues are its descriptors, one for each pair of queues.
	Queues []*os.File
}

// Close closes the descriptors. The interface ends with the last one, also of
// those that other processes have.
func (d *Device) Close() error {
	var errs []error
	for _, q := range d.Queues {
		errs = append(errs, q.Close())
	}
	d.Queues = nil
	return errors.Join(errs...)
}

// flags are those of an interface with this number of queues. A guest's network
// card offloads checksums and segmentation by a header before each frame.
func flags(queues int) uint16 {
	f := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if queues > 1 {
		f |= unix.IFF_MULTI_QUEUE
	}
	return f
}

// attach opens a queue of the interface of a name, which is made if there is
// none. "%d" in the name stands for the first free number.
func attach(name string, flags uint16) (f *os.File, got string, err error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", fmt.Errorf("open %s: %w", tunDevice, err)
	}
	f = os.NewFile(uintptr(fd), tunDevice)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("interface name %q: %w", name, err), f.Close())
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return nil, "", errors.Join(fmt.Errorf("interface %s: %w", name, err), f.Close())
	}
	return f, r.Name(), nil
}

// open opens all queues of an interface.
func open(name string, queues int) (d *Device, err error) {
	if queues < 1 || queues > maxQueues {
		return nil, fmt.Errorf("interface %s: %d queues: want 1 to %d", name, queues, maxQueues)
	}
	d = &Device{Name: name}
	for range queues {
		f, got, err := attach(d.Name, flags(queues))
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.Name, d.Queues = got, append(d.Queues, f)
	}
	return d, nil
}

// New makes an interface with this number of queues on a bridge. Where this
// process may not, the error is [ErrNotPermitted].
func New(bridge string, queues int) (*Device, error) {
	if _, err := linkFlags(bridge); err != nil { // a clear word before there is anything
		return nil, fmt.Errorf("bridge: %w", err)
	}
	d, err := open("vmtap%d", queues)
	if err == nil {
		if d.MTU, err = connect(d.Name, bridge); err != nil {
			err = errors.Join(err, d.Close())
		}
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, errors.Join(ErrNotPermitted, err)
	}
	if err != nil {
		return nil, fmt.Errorf("tap interface on %s: %w", bridge, err)
	}
	return d, nil
}

// Prepare makes an interface on a bridge, which [Open] takes over in a process of
// the user with this number. One that was prepared and never taken over is
// replaced; one that is in use is left alone, and an error.
func Prepare(name, bridge string, queues, user int) (err error) {
	if _, err := linkFlags(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	if err := removePrepared(name); err != nil {
		return err
	}
	// One queue is enough to make it; with its flags it takes more.
	f, _, err := attach(name, flags(queues))
	if err != nil {
		return fmt.Errorf("tap interface on %s: %w", bridge, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("tap interface on %s: %w", bridge, err), unix.IoctlSetInt(int(f.Fd()), unix.TUNSETPERSIST, 0))
		}
		err = errors.Join(err, f.Close())
	}()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.TUNSETOWNER, user); err != nil {
		return fmt.Errorf("give %s to user %d: %w", name, user, err)
	}
	if _, err := connect(name, bridge); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// removePrepared removes an interface that no process has open.
func removePrepared(name string) error {
	open, err := carrier(name)
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	if open {
		return fmt.Errorf("tap interface %s is in use: another pod of the machine still runs on this node", name)
	}
	// It may have been made for another number of queues.
	var f *os.File
	for _, queues := range []int{1, 2} {
		if f, _, err = attach(name, flags(queues)); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	return errors.Join(unix.IoctlSetInt(int(f.Fd()), unix.TUNSETPERSIST, 0), f.Close())
}

// Open takes over an interface that [Prepare] made for the user of this process.
// From now on it ends with its descriptors.
func Open(name string, queues int) (*Device, error) {
	// Without this, a name that is missing would be an attempt to make it.
	if _, err := linkFlags(name); err != nil {
		return nil, err
	}
	d, err := open(name, queues)
	if err != nil {
		return nil, err
	}
	err = unix.IoctlSetInt(int(d.Queues[0].Fd()), unix.TUNSETPERSIST, 0)
	if err == nil {
		d.MTU, err = mtu(name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("interface %s: %w", name, err), d.Close())
	}
	return d, nil
}
