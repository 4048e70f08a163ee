package qemucmd_test

import (
	"fmt"
	"path"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// world makes the files of generated machines. The zero world only names them.
type world struct {
	dir string
	// file makes a file of this name and returns its path.
	file func(name string, format qemucmd.DiskFormat) string
	// real keeps to what exists on the host that runs the tests: no block
	// devices, no URLs, no bridges, no TCP ports.
	real bool
}

func imagined() world {
	return world{
		dir:  "/run/vm",
		file: func(name string, _ qemucmd.DiskFormat) string { return "/images/" + name },
	}
}

// awkward are the characters that mean something to QEMU's option parsers, to
// JSON or to a shell, and some that have several bytes.
var awkward = []rune(`,,==""''\\ {}[]:;%$&|<>#*?~!()@+-._/aZ0é日` + "\u2028😀")

// text draws text that is hard to quote.
func text(minRunes, maxRunes, maxBytes int) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom(awkward), minRunes, maxRunes, maxBytes)
}

// fileName draws a name that a file can have.
func fileName() *rapid.Generator[string] {
	return rapid.Map(text(1, 12, 60), func(s string) string { return strings.ReplaceAll(s, "/", "_") })
}

// number draws a small number, mostly tiny.
func number(t *rapid.T, label string, least, most int) int {
	if rapid.Bool().Draw(t, label+" small") {
		most = min(most, least+2)
	}
	return rapid.IntRange(least, most).Draw(t, label)
}

func maybe(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

// machine draws a machine that Build must accept on qemucmd.GenericHost.
func machine(t *rapid.T, w world) qemucmd.Machine {
	n := 0
	file := func(label string, format qemucmd.DiskFormat) string {
		n++ // no two files have the same name
		return w.file(fmt.Sprintf("%d%s", n, fileName().Draw(t, label)), format)
	}
	socket := func(name string) *qemucmd.Socket {
		n++
		return &qemucmd.Socket{Path: path.Join(w.dir, fmt.Sprintf("%s%d%s", name, n, strings.ReplaceAll(text(0, 3, 12).Draw(t, name), "/", "_")))}
	}
	m := qemucmd.Machine{
		Name:          text(1, 20, 80).Draw(t, "name"),
		UUID:          rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(t, "uuid"),
		Type:          rapid.SampledFrom([]string{"", "q35", "pc-q35-7.2", "pc-q35-6.2"}).Draw(t, "type"),
		Accelerator:   rapid.SampledFrom([]qemucmd.Accelerator{"", "auto", "tcg"}).Draw(t, "accelerator"),
		CPU:           cpu(t),
		Memory:        qemucmd.Memory{Size: rapid.Int64Range(1, 256<<20).Draw(t, "memory")},
		Firmware:      qemucmd.Firmware{Kind: rapid.SampledFrom([]qemucmd.FirmwareKind{"", "bios", "uefi", "uefi-4m", "secure", "secure-4m"}).Draw(t, "firmware")},
		AddressMap:    rapid.IntRange(0, qemucmd.NewestAddressMap).Draw(t, "address map"),
		FirstDiskSlot: rapid.SampledFrom([]int{0, 0, 10, 12, 0x10, 0x12}).Draw(t, "first disk slot"),
		PanicDevice:   rapid.SampledFrom([]string{"", "pvpanic-pci", "pvpanic"}).Draw(t, "panic device"),
		BootMenu:      maybe(t, "boot menu"),
		RTC: qemucmd.RTC{
			Base:  rapid.SampledFrom([]string{"", "utc", "localtime", "2006-01-02", "2026-11-21T10:11:12"}).Draw(t, "rtc base"),
			Clock: rapid.SampledFrom([]string{"", "rt", "host", "vm"}).Draw(t, "rtc clock"),
		},
		Outputs: rapid.IntRange(0, 16).Draw(t, "outputs"),
		Monitor: *socket("qmp"),
	}
	if w.real {
		m.TranslationCache = 32
		m.Memory.Size += 8 << 20 // a kernel and an initrd have to fit
	}
	if m.Firmware.Kind != qemucmd.FirmwareBIOS {
		m.Firmware.VarsPath = file("vars", "vars")
		if !w.real && maybe(t, "vars fd") {
			m.Firmware.VarsFD = 3002
		}
	}
	if maybe(t, "kernel boot") {
		m.KernelBoot = &qemucmd.KernelBoot{Kernel: file("kernel", "kernel"), Args: text(0, 30, 120).Draw(t, "append")}
		if maybe(t, "initrd") {
			m.KernelBoot.Initrd = file("initrd", qemucmd.DiskFormatRaw)
			if !w.real && maybe(t, "initrd fd") {
				m.KernelBoot.InitrdFD = 3001
			}
		}
		if !w.real && maybe(t, "kernel fd") {
			m.KernelBoot.KernelFD = 3000
		}
	}
	if maybe(t, "serial") {
		m.Serial = socket("ttyS0")
	}
	if maybe(t, "tool monitor") {
		m.ToolMonitor = socket("tool")
	}
	if maybe(t, "guest agent") {
		m.GuestAgent = socket("qga")
	}
	if maybe(t, "vmop agent") {
		m.VMOPAgent = socket("vmop")
	}
	if maybe(t, "tpm") {
		n++
		m.TPM = &qemucmd.TPM{Socket: path.Join(w.dir, fmt.Sprintf("tpm%d", n)), StateDir: path.Join(w.dir, fmt.Sprintf("tpm%d.state", n))}
	}
	boot := bootOrder(t)
	for i := range number(t, "networks", 0, 20) {
		m.Networks = append(m.Networks, network(t, w, i))
	}
	for range number(t, "cd drives", 0, 6) {
		cd := qemucmd.CDDrive{BootIndex: boot()}
		switch rapid.IntRange(0, 2).Draw(t, "cd") {
		case 1:
			cd.Image = file("image", qemucmd.DiskFormatRaw)
		case 2:
			if !w.real {
				cd.Image = "https://example.org/" + file("url", qemucmd.DiskFormatRaw)[1:]
				cd.Image = strings.Map(func(r rune) rune {
					if strings.ContainsRune("%#?@ ", r) {
						return '_'
					}
					return r
				}, cd.Image)
			}
		}
		if _, isURL := limits.URLScheme(cd.Image); !w.real && cd.Image != "" && !isURL && maybe(t, "cd fd") {
			cd.FD = 2000 + len(m.CDDrives)
		}
		m.CDDrives = append(m.CDDrives, cd)
	}
	for i := range number(t, "disks", 0, 30) {
		d := qemucmd.Disk{BootIndex: boot()}
		d.Format = rapid.SampledFrom([]qemucmd.DiskFormat{"", "raw", "qcow2"}).Draw(t, "format")
		if !w.real && maybe(t, "device") {
			d.Device = "/dev/" + strings.TrimPrefix(file("disk", ""), "/images/")
		} else {
			d.File = file("disk", d.Format)
		}
		if !w.real && maybe(t, "disk fd") {
			d.FD = 1000 + i
		}
		if maybe(t, "has serial") {
			// The separator keeps the serials of disks 1 and 10 apart.
			d.Serial = fmt.Sprintf("%d-%s", i, text(0, 17, 17).Draw(t, "serial"))
		}
		m.Disks = append(m.Disks, d)
	}
	if m.AddressMap == 2 {
		for i := range number(t, "shares", 0, 8) {
			s := qemucmd.Share{Tag: fmt.Sprintf("t%d", i), Dir: "/srv/" + fileName().Draw(t, "folder"), ReadOnly: maybe(t, "read-only"), Protocol: qemucmd.Share9P}
			if w.real {
				s.Dir = w.dir
			} else if maybe(t, "virtiofs") {
				s.Protocol, s.Socket = "", socket("virtiofs").Path
			}
			m.Shares = append(m.Shares, s)
		}
	}
	if !w.real { // which need not have QEMU's module
		for i := range number(t, "USB devices", 0, 8) {
			m.USBDevices = append(m.USBDevices, qemucmd.USBDevice{
				Vendor: rapid.StringMatching("[0-9a-fA-F]{3}[1-9a-fA-F]").Draw(t, "vendor"), Product: fmt.Sprintf("%04x", i+1),
			})
		}
	}
	if maybe(t, "seed") {
		m.Seed = &qemucmd.Seed{File: file("seed", qemucmd.DiskFormatRaw)}
	}
	if len(m.CDDrives) < 6 && maybe(t, "answer CD") {
		m.AnswerCD = &qemucmd.AnswerCD{File: file("answers", qemucmd.DiskFormatRaw)}
	}
	if maybe(t, "display") {
		s := &qemucmd.SPICE{
			Ticketing:      maybe(t, "ticketing"),
			StreamingVideo: rapid.SampledFrom([]string{"", "off", "all", "filter"}).Draw(t, "video"),
			USBRedirects:   rapid.IntRange(0, 14-len(m.USBDevices)).Draw(t, "redirects"),
		}
		if w.real || maybe(t, "spice socket") {
			s.Socket = socket("spice").Path
		} else {
			s.Port = rapid.IntRange(1, 65535).Draw(t, "port")
			s.Address = rapid.SampledFrom([]string{"", "127.0.0.1", "::", "a,b=c"}).Draw(t, "address")
		}
		m.Display = &qemucmd.Display{SPICE: s}
		if maybe(t, "vnc") {
			m.Display.VNC = vnc(t, w, socket)
		}
		if !w.real && maybe(t, "tls") {
			m.Display.TLSDir = "/" + text(0, 8, 40).Draw(t, "tls directory")
			m.Display.TLSWithoutAuthority = maybe(t, "no authority")
		}
	}
	return m
}

// cpu draws a topology whose parts fit, given in part or in full.
func cpu(t *rapid.T) qemucmd.CPU {
	c := qemucmd.CPU{
		Model:   rapid.SampledFrom([]string{"", "host", "host,-vmx", "max", "qemu64,+ssse3"}).Draw(t, "cpu model"),
		Sockets: rapid.IntRange(1, 3).Draw(t, "sockets"),
		Dies:    rapid.IntRange(1, 2).Draw(t, "dies"),
		Cores:   rapid.IntRange(1, 5).Draw(t, "cores"),
		Threads: rapid.IntRange(1, 2).Draw(t, "threads"),
	}
	c.Maximum = c.Sockets * c.Dies * c.Cores * c.Threads
	omit := []*int{&c.Sockets, &c.Dies, &c.Cores, &c.Threads, &c.Maximum}
	for i, p := range omit {
		if maybe(t, fmt.Sprint("omit ", i)) {
			*p = 0
		}
	}
	return c
}

// bootOrder returns a function that draws boot indexes, each once.
func bootOrder(t *rapid.T) func() *int {
	next := 0
	return func() *int {
		if !maybe(t, "bootable") {
			return nil
		}
		i := next
		next++
		return &i
	}
}

func network(t *rapid.T, w world, i int) qemucmd.Network {
	n := qemucmd.Network{
		Device: rapid.SampledFrom([]string{"", "virtio-net", "virtio-net-pci", "e1000e", "rtl8139"}).Draw(t, "nic"),
		MAC:    qemucmd.StableMAC(rapid.StringN(0, 5, 20).Draw(t, "mac"), i),
	}
	if !w.real && maybe(t, "tap") {
		n.Tap = &qemucmd.TapNetwork{Bridge: rapid.SampledFrom([]string{"", "br0", "br,x=1"}).Draw(t, "bridge")}
		if maybe(t, "tap fd") {
			queues := 1
			if n.Device != "e1000e" && n.Device != "rtl8139" {
				queues = number(t, "queues", 1, 4)
			}
			vhost := maybe(t, "vhost")
			for j := range queues {
				n.Tap.FDs = append(n.Tap.FDs, 100+20*i+j)
				if vhost {
					n.Tap.VhostFDs = append(n.Tap.VhostFDs, 110+20*i+j)
				}
			}
			n.Tap.MTU = rapid.SampledFrom([]int{0, 1400, 1500, 9000}).Draw(t, "mtu")
		}
		return n
	}
	n.User = &qemucmd.UserNetwork{Net: rapid.SampledFrom([]string{"", "10.0.2.0/24", "10.8.0.0/29", "192.168.0.0/255.255.0.0"}).Draw(t, "net")}
	if !w.real {
		for j := range number(t, "forwards", 0, 3) {
			n.User.HostForwards = append(n.User.HostForwards, qemucmd.HostForward{
				Protocol:    rapid.SampledFrom([]string{"", "tcp", "udp"}).Draw(t, "protocol"),
				HostAddress: rapid.SampledFrom([]string{"", "0.0.0.0", "192.168.1.1"}).Draw(t, "address"),
				HostPort:    2000 + 10*i + j, GuestPort: rapid.IntRange(1, 65535).Draw(t, "guest port"),
			})
		}
	}
	return n
}

// mustBuild builds a machine that has to be valid.
func mustBuild(t interface {
	Helper()
	Fatalf(string, ...any)
}, m qemucmd.Machine, h qemucmd.Host) qemucmd.Command {
	t.Helper()
	cmd, err := qemucmd.Build(m, h)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return cmd
}

// small is a machine with nothing that is optional.
func small() qemucmd.Machine {
	return qemucmd.Machine{
		Name:     "small",
		UUID:     "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
		Memory:   qemucmd.Memory{Size: 128 << 20},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareBIOS},
		Monitor:  qemucmd.Socket{Path: "/run/vm/small/monitor.sock"},
	}
}

// vnc draws a server that nobody gets into without a password.
func vnc(t *rapid.T, w world, socket func(string) *qemucmd.Socket) *qemucmd.VNC {
	v := &qemucmd.VNC{Password: maybe(t, "vnc password")}
	if w.real || maybe(t, "vnc socket") {
		v.Socket = socket("vnc").Path
	} else {
		v.Port = rapid.IntRange(5900, 65535).Draw(t, "vnc port")
		if maybe(t, "websocket") {
			v.Websocket = v.Port - 5899
		}
		v.Address = rapid.SampledFrom([]string{"127.0.0.1", "::1", "localhost"}).Draw(t, "vnc address")
		if v.Password {
			v.Address = rapid.SampledFrom([]string{"", "127.0.0.1", "::", "a,b=c"}).Draw(t, "vnc address")
		}
	}
	return v
}
