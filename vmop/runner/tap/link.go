package tap

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// control calls do with a socket for ioctls on interfaces.
func control(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	return errors.Join(do(fd), unix.Close(fd))
}

func ask(fd int, what uint, name string) (*unix.Ifreq, error) {
	r, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, what, r)
	}
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return r, nil
}

func linkFlags(name string) (flags uint16, err error) {
	err = control(func(fd int) error {
		r, err := ask(fd, unix.SIOCGIFFLAGS, name)
		if err == nil {
			flags = r.Uint16()
		}
		return err
	})
	return flags, err
}

// carrier reports whether a process has a tap interface open. IFF_RUNNING follows up to a second
// later.
func carrier(name string) (on bool, err error) {
	type value struct{ command, data uint32 }
	type request struct {
		name [unix.IFNAMSIZ]byte
		data *value
		_    [16]byte
	}
	r := request{data: &value{command: unix.ETHTOOL_GLINK}}
	if len(name) >= len(r.name) {
		return false, fmt.Errorf("interface name %q is too long", name)
	}
	copy(r.name[:], name)
	err = control(func(fd int) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
			return fmt.Errorf("interface %s: %w", name, errno)
		}
		return nil
	})
	return r.data.data != 0, err
}

func mtu(name string) (n int, err error) {
	err = control(func(fd int) error {
		r, err := ask(fd, unix.SIOCGIFMTU, name)
		if err == nil {
			n = int(r.Uint32())
		}
		return err
	})
	return n, err
}

// connect makes an interface a port of a bridge, with the bridge's MTU, which it returns, and sets
// it up.
func connect(name, bridge string) (size int, err error) {
	err = control(func(fd int) error {
		if err := raiseAddress(fd, name); err != nil {
			return err
		}
		r, err := ask(fd, unix.SIOCGIFMTU, bridge)
		if err != nil {
			return err
		}
		size = int(r.Uint32())
		if r, err = unix.NewIfreq(name); err != nil {
			return err
		}
		r.SetUint32(uint32(size))
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, r); err != nil {
			return fmt.Errorf("MTU of %s: %w", name, err)
		}
		if r, err = ask(fd, unix.SIOCGIFINDEX, name); err != nil {
			return err
		}
		index := r.Uint32()
		if r, err = unix.NewIfreq(bridge); err != nil {
			return err
		}
		r.SetUint32(index)
		err = unix.IoctlIfreq(fd, unix.SIOCBRADDIF, r)
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("%s is an interface, but no bridge", bridge)
		}
		if err != nil {
			return fmt.Errorf("make %s a port of bridge %s: %w", name, bridge, err)
		}
		if r, err = ask(fd, unix.SIOCGIFFLAGS, name); err != nil {
			return err
		}
		r.SetUint16(r.Uint16() | unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
		return nil
	})
	return size, err
}

// addressRequest is a struct ifreq with a hardware address, which package unix lacks.
type addressRequest struct {
	name   [unix.IFNAMSIZ]byte
	family uint16
	data   [14]byte
	_      [8]byte
}

// raiseAddress gives the host's side of an interface a high address: a bridge takes the lowest one
// of its ports, and would change its own with each machine that starts.
func raiseAddress(fd int, name string) error {
	var r addressRequest
	if len(name) >= len(r.name) {
		return fmt.Errorf("interface name %q is too long", name)
	}
	copy(r.name[:], name)
	call := func(what uintptr) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), what, uintptr(unsafe.Pointer(&r))); errno != 0 {
			return fmt.Errorf("address of %s: %w", name, errno)
		}
		return nil
	}
	if err := call(unix.SIOCGIFHWADDR); err != nil {
		return err
	}
	r.data[0] = 0xfe
	return call(unix.SIOCSIFHWADDR)
}
