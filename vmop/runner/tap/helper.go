package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// helperDeadline bounds the helper's work, which takes milliseconds.
const helperDeadline = 10 * time.Second

// Helper has QEMU's bridge helper create an interface on a bridge, with one pair of queues. The
// helper's own configuration (bridge.conf) decides whether this user may use the bridge.
func Helper(ctx context.Context, path, bridge string) (*Device, error) {
	ctx, cancel := context.WithTimeout(ctx, helperDeadline)
	defer cancel()
	ours, theirs, err := pair()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer ours.Close()
	cmd := exec.CommandContext(ctx, path, "--use-vnet", "--fd=3", "--br="+bridge)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = errors.Join(cmd.Run(), theirs.Close())
	if err != nil {
		return nil, fmt.Errorf("%s for bridge %s: %w: %s", path, bridge, err, strings.Join(strings.Fields(said.String()), " "))
	}
	f, err := receive(ours)
	if err != nil {
		return nil, fmt.Errorf("%s for bridge %s: %w", path, bridge, err)
	}
	d := &Device{Queues: []*os.File{f}}
	if err := d.identify(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s for bridge %s: %w", path, bridge, err), d.Close())
	}
	return d, nil
}

func (d *Device) identify() (err error) {
	var r *unix.Ifreq
	if r, err = unix.NewIfreq(""); err == nil {
		err = unix.IoctlIfreq(int(d.Queues[0].Fd()), unix.TUNGETIFF, r)
	}
	if err != nil {
		return fmt.Errorf("what was handed over is no tap interface: %w", err)
	}
	d.Name = r.Name()
	d.MTU, err = mtu(d.Name)
	return err
}

// pair returns two connected sockets, the second one for a child.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "helper")
	f := os.NewFile(uintptr(fds[0]), "helper")
	c, err := net.FileConn(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return c.(*net.UnixConn), theirs, nil
}

// receive returns the one descriptor that a helper which has ended has sent.
func receive(c *net.UnixConn) (*os.File, error) {
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	_, n, _, _, err := c.ReadMsgUnix(data, control)
	if err != nil {
		return nil, fmt.Errorf("it handed nothing over: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			return os.NewFile(uintptr(fd), tunDevice), nil
		}
	}
	return nil, errors.New("it handed nothing over")
}
