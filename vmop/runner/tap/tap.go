package tap

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// DefaultBridge is the bridge if none is named, as in qemu-bridge-helper.
const DefaultBridge = "br0"

// maxQueues is Linux's MAX_TAP_QUEUES.
const maxQueues = 256

const tunDevice = "/dev/net/tun"

// ErrNotPermitted is the error when this process may not create an interface.
var ErrNotPermitted = errors.New("making a tap interface needs CAP_NET_ADMIN")

// Device is an open interface.
type Device struct {
	// Name is the interface's name on the host.
	Name string
	// MTU is the bridge's, in bytes.
	MTU int
	// Queues are the descriptors, one for each pair of queues.
	Queues []*os.File
}

// Close closes the descriptors. The interface is deleted with the last one, including those of
// other processes.
func (d *Device) Close() error {
	var errs []error
	for _, q := range d.Queues {
		errs = append(errs, q.Close())
	}
	d.Queues = nil
	return errors.Join(errs...)
}

// flags returns the flags of an interface with this number of queues. With IFF_VNET_HDR, the
// guest's network card offloads checksums and segmentation.
func flags(queues int) uint16 {
	f := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if queues > 1 {
		f |= unix.IFF_MULTI_QUEUE
	}
	return f
}

// attach opens a queue of the named interface, and creates it if it does not exist. "%d" in the
// name stands for the first free number.
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

// New creates an interface with this number of queues on a bridge. The error is [ErrNotPermitted]
// if this process lacks the privilege.
func New(bridge string, queues int) (*Device, error) {
	if _, err := linkFlags(bridge); err != nil { // a clear error before anything is created
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

// Prepare creates an interface on a bridge, which [Open] takes over in a process of this user. A
// prepared one that was never taken over is replaced; one in use is an error.
func Prepare(name, bridge string, queues, user int) (err error) {
	if _, err := linkFlags(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	if err := removePrepared(name); err != nil {
		return err
	}
	// One queue is enough to create it; these flags permit more.
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
	// It may have been created for another number of queues.
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

// Open takes over an interface that [Prepare] created for the user of this process. From then on it
// exists as long as its descriptors.
func Open(name string, queues int) (*Device, error) {
	// Otherwise TUNSETIFF would try to create a missing interface.
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
