package qemucmd

import "github.com/vmop/sdk/vmop/limits"

func (b *builder) serial() {
	if b.m.Serial == nil {
		b.chardev("null", "charserial0", "nobody listens to the serial port")
	} else {
		b.chardev("socket", "charserial0", "the serial console; a client that is connected must read, or the guest waits", listen(*b.m.Serial)...)
		b.socket(SocketSerial, *b.m.Serial)
	}
	b.device("serial", "isa-serial", "serial0", "the first serial port, connected or not, so that the guest's console settings hold",
		Prop{"chardev", Ref("charserial0")}, Prop{"index", Int(0)})
}

// Ports of the virtio-serial device, fixed so that an absent channel does not move the others. Port
// 0 is reserved for a console.
const (
	portGuestAgent = 1
	portVMOPAgent  = 2
	portVDAgent    = 3
)

func (b *builder) channels() {
	b.device("guestAgent", "virtio-serial-pci", "virtio-serial0", "the ports of the agents in the guest", at(slotSerial, 0)...)
	if s := b.m.GuestAgent; s != nil {
		b.channel("guestAgent", GuestAgentChannel, portGuestAgent, "org.qemu.guest_agent.0", GuestAgentChardev, "the QEMU guest agent")
		b.chardev("socket", GuestAgentChardev, "the guest agent's clients connect here", listen(*s)...)
		b.socket(SocketGuestAgent, *s)
	}
	if s := b.m.VMOPAgent; s != nil {
		b.channel("vmopAgent", VMOPAgentChannel, portVMOPAgent, "org.jdrupes.vmop_agent.0", VMOPAgentChardev, "the agent that logs users in")
		b.chardev("socket", VMOPAgentChardev, "the VM-Operator agent's clients connect here", listen(*s)...)
		b.socket(SocketVMOPAgent, *s)
	}
}

func (b *builder) channel(field, id string, nr int, name, chardev, why string) {
	b.device(field, agentPort, id, why,
		Prop{"bus", Bus("virtio-serial0.0")}, Prop{"nr", Int(nr)}, Prop{"name", Str(name)}, Prop{"chardev", Ref(chardev)})
}

const (
	usbPorts        = 15
	usbPortTablet   = 1
	usbPortRedirect = 2 // and up
)

func (b *builder) usb() {
	b.device("type", "qemu-xhci", "usb", "a USB 2 and 3 controller with as many ports as it can have",
		at(slotUSB, 0, Prop{"p2", Int(usbPorts)}, Prop{"p3", Int(usbPorts)})...)
	b.device("type", "usb-tablet", "tablet0", "a pointer with absolute coordinates: the mouse is where the viewer shows it",
		usbPort(usbPortTablet)...)
}

// usbPort returns the address of a USB device. QEMU's port is a string, because it may be a path
// through hubs.
func usbPort(n int) []Prop {
	return []Prop{{"bus", Bus(USBBus)}, {"port", Str(Int(n).String())}}
}

const (
	// rngBytes is how much of the host's randomness a guest gets per rngPeriod (in milliseconds): a
	// hundred times what a boot needs, and too little to keep a host CPU busy.
	rngBytes  = 64 << 10
	rngPeriod = 1000
)

func (b *builder) rng() {
	b.object("rng-random", "objrng0", "the host's randomness; urandom never makes a guest wait",
		Prop{"filename", Str("/dev/urandom")})
	b.device("type", "virtio-rng-pci", "rng0", "guests do not wait for entropy when they boot",
		at(slotRNG, 0, Prop{"rng", Ref("objrng0")}, Prop{"max-bytes", Int(rngBytes)}, Prop{"period", Int(rngPeriod)})...)
}

const (
	// hostmemPerOutput is enough for several buffers of a 4K monitor.
	hostmemPerOutput = 256 * mebibyte
)

func (b *builder) video() {
	outputs := b.m.Outputs
	if outputs == 0 {
		outputs = 1
	}
	b.invalid("outputs", outputs, limits.Outputs(int64(outputs)))
	b.device("type", "virtio-vga", VideoID, "graphics that the firmware and every guest can use; the memory grows with the monitors",
		at(slotVideo, 0, Prop{"max_outputs", Int(outputs)}, Prop{"max_hostmem", Int(int64(outputs) * hostmemPerOutput)})...)
}

// panicDevice uses an address that no map gives to another device. The ISA model has an I/O port
// instead.
func (b *builder) panicDevice() {
	const why = "the guest's kernel tells here that it has panicked"
	switch model := b.m.PanicDevice; model {
	case "":
	case panicPCI:
		b.device("panicDevice", model, "panic0", why, at(slotChipset, functionPanic)...)
	default:
		if b.invalid("panicDevice", model, limits.PanicDevice(model)) {
			b.device("panicDevice", model, PanicPortID, why)
		}
	}
}

func (b *builder) sound() {
	b.device("type", "ich9-intel-hda", "sound0", "the sound controller; it has a codec if a display carries sound", at(slotSound, 0)...)
}
