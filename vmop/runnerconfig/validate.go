package runnerconfig

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

var errNoConfig = errors.New("there is no configuration: the pointer is nil")

// Validate returns every problem of a configuration to which [Default] was applied, joined by
// errors.Join; each is an [*Error]. It reads no files.
func Validate(c *Config) error {
	if c == nil {
		return errNoConfig
	}
	v := &validator{}
	vm := &c.Runner.VM
	v.name("vm.name", vm.Name)
	if vm.UUID != "" {
		v.limit("vm.uuid", vm.UUID, limits.UUID(vm.UUID))
	}
	v.limit("vm.firmware", vm.Firmware, limits.Firmware(vm.Firmware))
	if vm.PanicDevice != "" {
		v.limit("vm.panicDevice", vm.PanicDevice, limits.PanicDevice(vm.PanicDevice))
	}
	v.oneOf("vm.accelerator", vm.Accelerator, "auto", "kvm", "tcg", "none")
	v.oneOf("vm.bootOrder", vm.BootOrder, BootOrderList, BootOrderFirmware)
	v.oneOf("vm.cpuOrder", vm.CPUOrder, CPUOrderLowest, CPUOrderHighest)
	if vm.MachineType != "" {
		v.limit("vm.machineType", vm.MachineType, limits.MachineType(vm.MachineType))
	}
	v.limit("vm.cpuModel", vm.CPUModel, limits.CPUModel(vm.CPUModel))
	v.limit("vm.rtcBase", vm.RTCBase, limits.RTCBase(vm.RTCBase))
	v.limit("vm.rtcClock", vm.RTCClock, limits.RTCClock(vm.RTCClock))
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
	v.shares(vm.Shares)
	v.attachments(vm.Attachments)
	v.usbDevices(vm)
	v.display(vm.Display)
	return errors.Join(v.errs...)
}

func (v *validator) cpus(vm *VM) {
	for _, f := range []struct {
		path  string
		count int
	}{
		{"vm.maximumCpus", vm.MaximumCPUs}, {"vm.currentCpus", vm.CurrentCPUs}, {"vm.pendingCpus", vm.PendingCPUs}, {"vm.sockets", vm.Sockets},
		{"vm.diesPerSocket", vm.DiesPerSocket}, {"vm.coresPerDie", vm.CoresPerDie}, {"vm.threadsPerCore", vm.ThreadsPerCore},
	} {
		if f.count < 0 || f.count > limits.MaxCPUs {
			v.add(f.path, "%d: want 0 to %d", f.count, limits.MaxCPUs)
			return
		}
	}
}

func (vm *VM) topologyCPUs() int {
	product := 0
	for _, n := range []int{vm.Sockets, vm.DiesPerSocket, vm.CoresPerDie, vm.ThreadsPerCore} {
		if n > 0 {
			product = max(product, 1) * n
		}
	}
	return product
}

// cpuSlots is the number of CPUs that the machine can have: maximumCpus, or the product of the
// topology, or currentCpus. As in VM-Operator, a currentCpus above maximumCpus raises it.
func (vm *VM) cpuSlots() int {
	n := vm.MaximumCPUs
	if n == 0 {
		n = vm.topologyCPUs()
	}
	return max(n, vm.CurrentCPUs, 1)
}

func (v *validator) networks(nets []Network) {
	macs := map[string]int{}
	for i, n := range nets {
		path := fmt.Sprintf("vm.network[%d]", i)
		v.oneOf(path+".type", n.Type, NetworkTap, NetworkUser)
		if n.MAC != "" {
			mac, err := limits.MAC(n.MAC)
			if j, dup := macs[mac]; dup && err == nil {
				v.add(path+".mac", "%q is already the address of vm.network[%d]", n.MAC, j)
			}
			v.limit(path+".mac", n.MAC, err)
			macs[mac] = i
		}
		_, err := limits.NICModel(n.Device)
		v.limit(path+".device", n.Device, err)
		if n.Bridge != "" {
			v.limit(path+".bridge", n.Bridge, limits.InterfaceName(n.Bridge))
		}
		if n.Net != "" {
			v.limit(path+".net", n.Net, limits.UserNetwork(n.Net))
		}
		if n.Type == NetworkTap && (n.Net != "" || len(n.HostForwards) > 0) {
			v.add(path, "net and hostForwards need the type user")
		}
		if n.Type == NetworkUser && n.Bridge != "" {
			v.add(path+".bridge", "needs the type tap")
		}
		for j, f := range n.HostForwards {
			fp := fmt.Sprintf("%s.hostForwards[%d]", path, j)
			if f.Protocol != "" {
				v.limit(fp+".protocol", f.Protocol, limits.ForwardProtocol(f.Protocol))
			}
			if f.HostAddress != "" {
				v.limit(fp+".hostAddress", f.HostAddress, limits.ForwardAddress(f.HostAddress))
			}
			v.limit(fp+".hostPort", f.HostPort, limits.Port(int64(f.HostPort)))
			v.limit(fp+".guestPort", f.GuestPort, limits.Port(int64(f.GuestPort)))
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
		if d.ReadOnly && (d.Image != nil || d.Size > 0 || d.GrowTo > 0 || d.NewImage) {
			v.add(path+".readOnly", "is for a disk that is there, and neither made nor enlarged")
		}
		if d.Image != nil {
			v.image(path+".image", &d)
		}
		if b := d.BootIndex; b != nil {
			if err := limits.BootIndex(int64(*b)); err != nil {
				v.limit(path+".bootindex", *b, err)
			} else if j, dup := boot[*b]; dup {
				v.add(path+".bootindex", "%d is already the index of vm.drives[%d]", *b, j)
			}
			boot[*b] = i
		}
	}
}

func (v *validator) image(at string, d *Drive) {
	im := d.Image
	if d.Type != DriveRaw || d.File == "" {
		v.add(at, "is for a disk whose file is given")
	}
	if im.Ephemeral && !strings.HasSuffix(d.File, ".ephemeral.img") {
		v.add(at+".ephemeral", "is for a file that is removed at the machine's end: %q does not end in .ephemeral.img", d.File)
	}
	if err := limits.ImageSource(im.Source); err != nil {
		v.add(at+".source", "%v", err) // without the source: it may contain a password
	}
	if im.Path != "" {
		v.limit(at+".path", im.Path, limits.ImagePath(im.Path))
	}
	if im.Checksum != "" {
		v.limit(at+".checksum", im.Checksum, limits.ImageChecksum(im.Checksum, limits.IsContainerImage(im.Source)))
	}
	if err := limits.CABundle(im.CABundle); err != nil {
		v.add(at+".caBundle", "%v", err)
	}
}

func (v *validator) shares(shares []Share) {
	if n := len(shares); n > limits.MaxShares {
		v.add("vm.shares", "has %d entries: want at most %d", n, limits.MaxShares)
	}
	tags := map[string]int{}
	for i, s := range shares {
		at := fmt.Sprintf("vm.shares[%d]", i)
		if v.limit(at+".tag", s.Tag, limits.ShareTag(s.Tag)) {
			if j, dup := tags[s.Tag]; dup {
				v.add(at+".tag", "%q is already the tag of vm.shares[%d]", s.Tag, j)
			}
			tags[s.Tag] = i
		}
		switch err := limits.Text(s.Dir); {
		case !path.IsAbs(s.Dir):
			v.add(at+".dir", "%q must be an absolute path", s.Dir)
		case err != nil:
			v.limit(at+".dir", s.Dir, err)
		}
		v.limit(at+".protocol", s.Protocol, limits.ShareProtocol(s.Protocol))
	}
}

func (v *validator) attachments(list []Attachment) {
	const at = "vm.attachments"
	seen := map[string]int{}
	for i, a := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if !isWord(a.UID, 64) {
			v.add(at+".uid", "%q: want 1 to 64 letters, digits and hyphens", a.UID)
		}
		if j, dup := seen[a.UID]; dup {
			v.add(at+".uid", "%q is already that of vm.attachments[%d]", a.UID, j)
		}
		seen[a.UID] = i
		if a.Name == "" || len(a.Name) > 253 || strings.ContainsFunc(a.Name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			v.add(at+".name", "%q: want 1 to 253 printable characters of ASCII without spaces", a.Name)
		}
		if a.Place < 0 || a.Place > qemucmd.HotPlugPorts {
			v.add(at+".place", "%d: want 1 to %d, or 0 for any", a.Place, qemucmd.HotPlugPorts)
		}
		switch err := limits.Text(a.Path); {
		case a.Path == "":
		case a.Address != "":
			v.add(at+".path", "an attachment has a path or an address")
		case !path.IsAbs(a.Path):
			v.add(at+".path", "%q must be an absolute path", a.Path)
		case err != nil:
			v.limit(at+".path", a.Path, err)
		}
		if a.Address == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(a.Address); err != nil || host == "" || port == "" {
			v.add(at+".address", "%q: want HOST:PORT", a.Address)
		}
		if len(a.Fingerprint) != 64 || strings.Trim(a.Fingerprint, "0123456789abcdef") != "" {
			v.add(at+".fingerprint", "%q: want 64 hexadecimal digits, in lower case", a.Fingerprint)
		}
	}
}

func isWord(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (v *validator) usbDevices(vm *VM) {
	const at = "vm.usbDevices"
	if n := len(vm.USBDevices); n > limits.MaxUSBDevices {
		v.add(at, "has %d entries: want at most %d", n, limits.MaxUSBDevices)
	}
	if d := vm.Display; d != nil && d.SPICE != nil && d.SPICE.USBRedirects != nil {
		n := *d.SPICE.USBRedirects
		if err := limits.USBPorts(len(vm.USBDevices), n); err != nil && limits.USBRedirects(int64(n)) == nil {
			v.add(at, "%v", err)
		}
	}
	seen := map[string]int{}
	for i, u := range vm.USBDevices {
		vendor := v.limit(fmt.Sprintf("%s[%d].vendor", at, i), u.Vendor, limits.USBID(u.Vendor))
		product := v.limit(fmt.Sprintf("%s[%d].product", at, i), u.Product, limits.USBID(u.Product))
		if !vendor || !product {
			continue
		}
		id := strings.ToLower(u.Vendor + ":" + u.Product)
		if j, dup := seen[id]; dup {
			v.add(fmt.Sprintf("%s[%d]", at, i), "%s:%s is already vm.usbDevices[%d]", u.Vendor, u.Product, j)
		}
		seen[id] = i
	}
}

// Where is the path of a raw drive, from any of its keys.
func (d *Drive) Where() string {
	return d.Resource + d.File + d.Device
}

// Ephemeral reports whether the disk is created anew at each start.
func (d *Drive) Ephemeral() bool { return d.Image != nil && d.Image.Ephemeral }
