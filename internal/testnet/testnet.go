// Package testnet gives tests a network of their own, without privileges where the
// kernel has user namespaces.
package testnet

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const insideEnv = "VMOP_TEST_NETNS"

// Inside reruns a test with all rights in a network and a mount namespace of its own, and reports
// whether this is the run inside.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// Bridge creates a bridge with an MTU, in bytes, and an IPv4 address of the host, none if empty.
func Bridge(t *testing.T, name string, mtu int, address string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	raw, err := unix.BytePtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCBRADDBR, uintptr(unsafe.Pointer(raw))); errno != 0 {
		t.Fatal(errno)
	}
	set := func(what uint, value func(*unix.Ifreq) error) {
		t.Helper()
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = value(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, what, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(uint32(mtu)); return nil })
	if address != "" {
		a, err := netip.ParseAddr(address)
		if err != nil {
			t.Fatal(err)
		}
		set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(a.AsSlice()) })
	}
	set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil })
}

// Interfaces returns the names of all interfaces except the loopback and the bridges, whose names
// begin with br.
func Interfaces(t *testing.T) []string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		// Some kernels give each namespace devices of their own.
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 && !strings.HasPrefix(i.Name, "br") {
			names = append(names, i.Name)
		}
	}
	return names
}
