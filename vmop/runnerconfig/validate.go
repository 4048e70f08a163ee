package runnerconfig

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Error is one problem of a configuration.
type Error struct {
	// Path is the key, as in "vm.drives[1].file", below "/Runner".
	Path string
	// Reason says what was found and what would be right.
	Reason string
}

func (e *Error) Error() string { return e.Path + ": " + e.Reason }

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// Validate lists every problem of a configuration to which [Default] was
// applied, joined by errors.Join; each is an [*Error]. It does not look at
// files.
func Validate(c *Config) error {
	v := &validator{}
	vm := &c.Runner.VM
	v.name("vm.name", vm.Name)
	if vm.UUID != "" && !uuidPattern.MatchString(vm.UUID) {
		v.add("vm.uuid", "%q is not a UUID such as 2d1f5ae0-5b1c-4f0e-8f9a-0123456789ab", vm.UUID)
	}
	v.oneOf("vm.firmware", vm.Firmware, "bios", "uefi", "uefi-4m", "secure", "secure-4m")
	v.oneOf("vm.accelerator", vm.Accelerator, "auto", "kvm", "tcg", "none")
	v.oneOf("vm.rtcBase", vm.RTCBase, "utc", "localtime", datetimeOr(vm.RTCBase))
	v.oneOf("vm.rtcClock", vm.RTCClock, "host", "rt", "vm")
	v.cpus(vm)
	if vm.MaximumRAM < 0 {
		v.add("vm.maximumRam", "%d is not a size", vm.MaximumRAM)
	}
	if vm.CurrentRAM > vm.MaximumRAM {
		v.add("vm.currentRam", "%s is more than maximumRam, %s", vm.CurrentRAM, vm.MaximumRAM)
	}
	if t := vm.PowerdownTimeout; t != nil && *t < 0 {
		v.add("vm.powerdownTimeout", "%d seconds: want 0 or more", *t)
	}
	if k := vm.KernelBoot; k != nil && k.Kernel == "" {
		v.add("vm.kernelBoot.kernel", "is empty: want the path of a kernel")
	}
	v.networks(vm.Network)
	v.drives(vm.Drives)
	v.display(vm.Display)
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

func (v *validator) add(path, format string, args ...any) {
	v.errs = append(v.errs, &Error{Path: path, Reason: fmt.Sprintf(format, args...)})
}

// name guards what becomes a directory name and a QEMU name.
func (v *validator) name(path, s string) {
	switch {
	case s == "":
		v.add(path, "is missing")
	case s == "." || s == ".." || strings.ContainsRune(s, '/') || strings.ContainsFunc(s, unicode.IsControl):
		v.add(path, "%q cannot be a machine's name: want one without slashes and control characters", s)
	case len(s) > 253:
		v.add(path, "is %d bytes long: want at most 253", len(s))
	}
}

func (v *validator) oneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		v.add(path, "%q is unknown: want one of %s", s, strings.Join(slices.DeleteFunc(allowed, func(a string) bool { return a == "" }), ", "))
	}
}

var datetimePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2})?$`)

// datetimeOr returns s where it is a start date as QEMU's -rtc base takes it.
func datetimeOr(s string) string {
	if datetimePattern.MatchString(s) {
		return s
	}
	return ""
}

func (v *validator) cpus(vm *VM) {
	for _, f := range []struct {
		path  string
		count int
	}{
		{"vm.maximumCpus", vm.MaximumCPUs}, {"vm.currentCpus", vm.CurrentCPUs}, {"vm.sockets", vm.Sockets},
		{"vm.diesPerSocket", vm.DiesPerSocket}, {"vm.coresPerDie", vm.CoresPerDie}, {"vm.threadsPerCore", vm.ThreadsPerCore},
	} {
		if f.count < 0 || f.count > 4096 {
			v.add(f.path, "%d: want 0 to 4096", f.count)
			return
		}
	}
}

// TopologyCPUs is the product of the topology that is given; 0 if none is.
func (vm *VM) TopologyCPUs() int {
	product := 0
	for _, n := range []int{vm.Sockets, vm.DiesPerSocket, vm.CoresPerDie, vm.ThreadsPerCore} {
		if n > 0 {
			product = max(product, 1) * n
		}
	}
	return product
}

// CPUSlots is the number of CPUs that the machine can have: maximumCpus, or
// what the topology makes, or currentCpus where neither is given. As in
// VM-Operator, a currentCpus above maximumCpus raises it.
func (vm *VM) CPUSlots() int {
	n := vm.MaximumCPUs
	if n == 0 {
		n = vm.TopologyCPUs()
	}
	return max(n, vm.CurrentCPUs, 1)
}

func (v *validator) networks(nets []Network) {
	macs := map[string]int{}
	for i, n := range nets {
		path := fmt.Sprintf("vm.network[%d]", i)
		v.oneOf(path+".type", n.Type, NetworkTap, NetworkUser)
		if n.MAC != "" {
			hw, err := net.ParseMAC(n.MAC)
			switch {
			case err != nil || len(hw) != 6:
				v.add(path+".mac", "%q is not a MAC address such as 02:00:00:12:34:56", n.MAC)
			case hw[0]&1 != 0:
				v.add(path+".mac", "%q is a multicast address: the lowest bit of the first byte must be 0", n.MAC)
			default:
				if j, dup := macs[hw.String()]; dup {
					v.add(path+".mac", "%q is already the address of vm.network[%d]", n.MAC, j)
				}
				macs[hw.String()] = i
			}
		}
		if n.Type == NetworkTap && (n.Net != "" || len(n.HostForwards) > 0) {
			v.add(path, "net and hostForwards need the type user")
		}
		if n.Type == NetworkUser && n.Bridge != "" {
			v.add(path+".bridge", "needs the type tap")
		}
		for j, f := range n.HostForwards {
			fp := fmt.Sprintf("%s.hostForwards[%d]", path, j)
			if f.HostPort < 1 || f.HostPort > 65535 {
				v.add(fp+".hostPort", "%d: want 1 to 65535", f.HostPort)
			}
			if f.GuestPort < 1 || f.GuestPort > 65535 {
				v.add(fp+".guestPort", "%d: want 1 to 65535", f.GuestPort)
			}
		}
	}
}

func (v *validator) drives(drives []Drive) {
	used := map[string]int{}
	boot := map[int]int{}
	for i, d := range drives {
		path := fmt.Sprintf("vm.drives[%d]", i)
		v.oneOf(path+".type", d.Type, DriveRaw, DriveCD)
		if d.Type == DriveRaw {
			given := 0
			for _, s := range []string{d.Resource, d.File, d.Device} {
				if s != "" {
					given++
				}
			}
			if given != 1 {
				v.add(path, "has %d of resource, file and device: want exactly one", given)
			} else if where := d.Where(); true {
				if j, dup := used[where]; dup {
					v.add(path, "%q is already used by vm.drives[%d]: two drives would write one disk", where, j)
				}
				used[where] = i
			}
		}
		if b := d.BootIndex; b != nil {
			if *b < 0 {
				v.add(path+".bootindex", "%d: want 0 or more", *b)
			} else if j, dup := boot[*b]; dup {
				v.add(path+".bootindex", "%d is already the index of vm.drives[%d]", *b, j)
			}
			boot[*b] = i
		}
	}
}

// Where is the path of a raw drive, whichever key names it.
func (d *Drive) Where() string {
	return d.Resource + d.File + d.Device
}

func (v *validator) display(d *Display) {
	if d == nil {
		return
	}
	if d.Outputs < 0 || d.Outputs > 16 {
		v.add("vm.display.outputs", "%d: want 1 to 16", d.Outputs)
	}
	if s := d.SPICE; s != nil {
		if s.Socket == "" && (*s.Port < 1 || *s.Port > 65535) {
			v.add("vm.display.spice.port", "%d: want 1 to 65535", *s.Port)
		}
		if s.Socket != "" && (s.Port != nil || s.Address != "") {
			v.add("vm.display.spice", "has a socket and a port or address: want one of them")
		}
		if n := s.USBRedirects; n != nil && (*n < 0 || *n > 14) {
			v.add("vm.display.spice.usbRedirects", "%d: want 0 to 14, the ports of the USB controller beside the tablet", *n)
		}
		if s.StreamingVideo != "" {
			v.oneOf("vm.display.spice.streaming-video", s.StreamingVideo, "off", "all", "filter")
		}
	}
	v.vnc(d)
}

func (v *validator) vnc(d *Display) {
	s := d.VNC
	if s == nil {
		return
	}
	if s.Socket == "" && (*s.Port < 5900 || *s.Port > 65535) {
		v.add("vm.display.vnc.port", "%d: want 5900 to 65535; QEMU counts displays from 5900 on", *s.Port)
	}
	if s.Socket != "" && (s.Port != nil || s.Address != "" && s.Websocket == nil) {
		v.add("vm.display.vnc", "has a socket and a port or address: want one of them")
	}
	if w := s.Websocket; w != nil && (*w < 1 || *w > 65535) {
		v.add("vm.display.vnc.websocket", "%d: want 1 to 65535", *w)
	}
	taken := map[int]string{}
	if d.SPICE != nil && d.SPICE.Port != nil {
		taken[*d.SPICE.Port] = "vm.display.spice.port"
	}
	for _, p := range []struct {
		path string
		port *int
	}{{"vm.display.vnc.port", s.Port}, {"vm.display.vnc.websocket", s.Websocket}} {
		if p.port == nil {
			continue
		}
		if by := taken[*p.port]; by != "" {
			v.add(p.path, "%d is already the port of %s", *p.port, by)
		}
		taken[*p.port] = p.path
	}
}
