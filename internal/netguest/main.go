// Command netguest runs in the tiny guest, where tests want its network to change:
//
//	netguest agent                   be the guest agent, which tells of the interfaces
//	netguest address INTERFACE IP    give an interface this IPv4 address, and set it up
//	netguest gateway IP              have what is not near be reached by this host
//	netguest mtu INTERFACE           print the interface's MTU and MAC address
//	netguest reach IP SIZE           send datagrams of SIZE bytes until the host at
//	                                 this address has answered that nobody wants them
//	netguest serve PORT              answer whoever comes by HTTP
//	netguest clock                   write the real-time clock, as NTP has Linux do
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/examples/vmop-agent/agent"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("netguest:", err)
		os.Exit(1)
	}
	fmt.Println("netguest: done")
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "agent":
		return serveAgent()
	case len(args) == 3 && args[0] == "address":
		return setAddress(args[1], args[2])
	case len(args) == 2 && args[0] == "gateway":
		return setGateway(args[1])
	case len(args) == 2 && args[0] == "mtu":
		i, err := net.InterfaceByName(args[1])
		if err == nil {
			fmt.Println("mtu", i.MTU, "mac", i.HardwareAddr)
		}
		return err
	case len(args) == 3 && args[0] == "reach":
		size, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return reach(args[1], size)
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 1 && args[0] == "clock":
		return writeClock()
	}
	return fmt.Errorf("arguments %q", args)
}

func serveAgent() error {
	path, err := agent.FindPort("org.qemu.guest_agent.0")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	a := qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-get-osinfo":             func(qgatest.Request) (any, error) { return map[string]string{"id": "netguest"}, nil },
		"guest-get-host-name":          func(qgatest.Request) (any, error) { return map[string]string{"host-name": "netguest"}, nil },
		"guest-network-get-interfaces": func(qgatest.Request) (any, error) { return interfaces() },
	}}
	a.Serve(patient{f})
	return errors.New("the port was closed")
}

// patient waits for a host: a port without one reads as EOF.
type patient struct{ *os.File }

func (p patient) Read(b []byte) (int, error) {
	for {
		n, err := p.File.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

type (
	guestInterface struct {
		Name      string         `json:"name"`
		MAC       string         `json:"hardware-address,omitempty"`
		Addresses []guestAddress `json:"ip-addresses"`
	}
	guestAddress struct {
		Address string `json:"ip-address"`
		Type    string `json:"ip-address-type"`
		Prefix  int    `json:"prefix"`
	}
)

func interfaces() (any, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []guestInterface
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		g := guestInterface{Name: i.Name, MAC: i.HardwareAddr.String()}
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				return nil, err
			}
			kind := "ipv6"
			if p.Addr().Is4() {
				kind = "ipv4"
			}
			g.Addresses = append(g.Addresses, guestAddress{p.Addr().String(), kind, p.Bits()})
		}
		out = append(out, g)
	}
	return out, nil
}

func setAddress(name, address string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(ip.AsSlice()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	if r.Uint16()&unix.IFF_UP != 0 {
		return nil // setting the flags again would set the card's filter again
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	return nil
}

// route is struct rtentry of linux/route.h, of 64 bits.
type route struct {
	_                        uint64
	to, gateway, genmask     unix.RawSockaddrInet4
	flags                    uint16
	_                        [3]uint64
	device, mtu, window, irt uintptr
}

// setGateway sets the default route. An interface already has a route for the network of its
// address's class, such as all of 10.0.0.0/8.
func setGateway(address string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r := route{flags: unix.RTF_UP | unix.RTF_GATEWAY}
	r.to.Family, r.genmask.Family = unix.AF_INET, unix.AF_INET
	r.gateway.Family, r.gateway.Addr = unix.AF_INET, ip.As4()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return fmt.Errorf("gateway: %w", errno)
	}
	return nil
}

// reach sends to a port without a listener, of which the destination notifies the sender.
func reach(address string, size int) error {
	c, err := net.Dial("udp", net.JoinHostPort(address, "9"))
	if err != nil {
		return err
	}
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if _, err := c.Write(make([]byte, size)); errors.Is(err, unix.ECONNREFUSED) {
			return nil
		}
		if err := c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, unix.ECONNREFUSED) {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer", address)
}

// serve answers each request alike, without net/http, which is larger than all the rest.
func serve(port string) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", port))
	if err != nil {
		return err
	}
	fmt.Println("netguest: done, and it goes on")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			request := bufio.NewScanner(c)
			for request.Scan() && request.Text() != "" { // up to the end of its header
			}
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nthe guest answers\n")
		}()
	}
}

func writeClock() error {
	f, err := os.OpenFile("/dev/rtc0", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := unix.IoctlGetRTCTime(int(f.Fd()))
	if err != nil {
		return err
	}
	return unix.IoctlSetRTCTime(int(f.Fd()), now)
}
