package runnerconfig

import (
	"slices"

	"github.com/vmop/sdk/vmop/limits"
)

// The defaults of VM-Operator's runner.
const (
	defaultFirmware         = "uefi"
	DefaultMaximumRAM       = Bytes(1 << 30)
	defaultCPUModel         = "host"
	defaultPowerdownTimeout = int64(900) // seconds
	defaultRTCBase          = "utc"
	defaultRTCClock         = "rt"
	defaultNetworkDevice    = "virtio-net"
	DefaultUSBRedirects     = 2
)

// Defaulted returns a copy of c with the defaults of [Default]; c and what it refers to are not
// changed.
func Defaulted(c Config) Config {
	vm := &c.Runner.VM
	vm.Network, vm.Drives, vm.Shares = slices.Clone(vm.Network), slices.Clone(vm.Drives), slices.Clone(vm.Shares)
	if vm.Display != nil {
		display := *vm.Display
		for at := range display.slots {
			at.unshare()
		}
		vm.Display = &display
	}
	Default(&c)
	return c
}

// Default sets the defaults of unset fields. It is idempotent.
func Default(c *Config) {
	if c == nil {
		return
	}
	vm := &c.Runner.VM
	setDefault(&vm.Firmware, defaultFirmware)
	setDefault(&vm.MaximumRAM, DefaultMaximumRAM)
	setDefault(&vm.CPUModel, defaultCPUModel)
	setDefault(&vm.RTCBase, defaultRTCBase)
	setDefault(&vm.RTCClock, defaultRTCClock)
	setDefault(&vm.CurrentCPUs, 1)
	setDefault(&vm.Accelerator, "auto")
	setDefault(&vm.BootOrder, BootOrderList)
	setDefault(&vm.CPUOrder, CPUOrderLowest)
	setDefaultPointer(&vm.PowerdownTimeout, defaultPowerdownTimeout)
	setDefaultPointer(&vm.Serial, true)
	for i := range vm.Network {
		setDefault(&vm.Network[i].Type, NetworkTap)
		setDefault(&vm.Network[i].Device, defaultNetworkDevice)
	}
	for i := range vm.Drives {
		setDefault(&vm.Drives[i].Type, DriveRaw)
	}
	for i := range vm.Shares {
		setDefault(&vm.Shares[i].Protocol, limits.ShareVirtioFS)
	}
	if d := vm.Display; d != nil {
		setDefault(&d.Outputs, 1)
		for s := range d.servers {
			defaultServer(s)
		}
	}
}
