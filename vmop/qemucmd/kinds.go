package qemucmd

import (
	"slices"

	"github.com/vmop/sdk/vmop/limits"
)

// kind is a row of the table of a machine's parts. What other packages need to know about all kinds
// (which files to remove, which processes serve QEMU, whom to ask for viewers) is derived from the
// rows, so that a new kind is a new row and its method.
type kind struct {
	// name is the name of its group of options.
	name  string
	build func(*builder)
	// models are the QEMU devices that it may use. A host needs only those that its machines use.
	models  []string
	sockets []socketRow
	files   []string
	helper  string
	agents  []Agent
	// display is set if it is a server of the machine's graphics output.
	display DisplayProtocol
	// server is how to find out whether QEMU has what it needs, if QEMU may lack it.
	server ServerNeed
}

type socketRow struct {
	purpose SocketPurpose
	// name is the socket's name in the runtime directory, VM-Operator's where it has the socket.
	name string
	// shared sockets are for the machine's user, others for the supervisor only.
	shared bool
}

// kinds lists the groups in the order of the command line, which is VM-Operator's. QEMU depends on
// the order in a few places: devices without a fixed address are placed in order, and the IOMMU
// must precede the PCI devices that it translates for.
var kinds = []kind{
	{name: "start", build: (*builder).start},
	{name: "sandbox", build: (*builder).sandbox},
	{
		name: "monitor", build: (*builder).monitor,
		sockets: []socketRow{{SocketMonitor, "monitor.sock", false}, {SocketToolMonitor, "qmp.sock", true}},
	},
	{name: "name", build: (*builder).name},
	{name: "machine", build: (*builder).machine},
	{name: "firmware", build: (*builder).pflash},
	{name: "boot", build: (*builder).boot},
	{name: "memory", build: (*builder).memory},
	{name: "balloon", build: (*builder).balloon, models: []string{"virtio-balloon-pci"}},
	{
		name: "tpm", build: (*builder).tpm, models: []string{"tpm-tis"}, helper: swtpm,
		sockets: []socketRow{{SocketTPM, "swtpm-sock", false}},
	},
	{name: "cpu", build: (*builder).processors},
	{name: "accelerator", build: (*builder).accelerator},
	{name: "iommu", build: (*builder).iommu, models: []string{"intel-iommu"}},
	{name: "rtc", build: (*builder).rtc},
	{
		name: "serial", build: (*builder).serial, models: []string{"isa-serial"},
		sockets: []socketRow{{SocketSerial, "serial.sock", false}, {SocketConsole, "console.sock", true}},
	},
	{
		name: "channels", build: (*builder).channels, models: []string{"virtio-serial-pci", agentPort},
		sockets: []socketRow{{SocketGuestAgent, "org.qemu.guest_agent.0", true}, {SocketVMOPAgent, "org.jdrupes.vmop_agent.0", true}},
		agents: []Agent{
			{"QEMU guest agent", GuestAgentChannel, GuestAgentChardev},
			{"VM-Operator agent", VMOPAgentChannel, VMOPAgentChardev},
		},
	},
	{name: "ports", build: (*builder).ports, models: []string{"pcie-root-port"}},
	{name: "generation", build: (*builder).generation, models: []string{"vmgenid"}},
	{name: "panic", build: (*builder).panicDevice, models: limits.PanicDevices()},
	{name: "usb", build: (*builder).usb, models: []string{"qemu-xhci", "usb-tablet"}},
	{name: "rng", build: (*builder).rng, models: []string{"virtio-rng-pci"}},
	{name: "video", build: (*builder).video, models: []string{"virtio-vga"}},
	{name: "sound", build: (*builder).sound, models: []string{"ich9-intel-hda"}},
	{name: "network", build: (*builder).networks, models: limits.NICModels()},
	{name: "cd", build: (*builder).cdDrives, models: []string{cdDrive}},
	{name: "disk", build: (*builder).disks, models: []string{virtioDisk, "virtio-scsi-pci"}},
	{
		name: "shares", build: (*builder).shares, models: []string{"vhost-user-fs-pci", "virtio-9p-pci"}, helper: virtiofsd,
		sockets: []socketRow{{SocketShare, shareSocket, false}},
	},
	{name: "usb-devices", build: (*builder).usbDevices, models: []string{USBHostDriver}},
	{name: "seed", build: (*builder).seed, models: []string{virtioDisk}, files: []string{SeedFileName}},
	{name: "answers", build: (*builder).answerCD, models: []string{cdDrive}, files: []string{AnswerCDFileName}},
	{name: "kernel", build: (*builder).kernel},
	{name: "display", build: (*builder).display},
	{name: "certificates", build: (*builder).certificates},
	{
		name: "spice", build: (*builder).spice, models: []string{agentPort, "hda-duplex", "usb-redir"}, display: SPICEProtocol,
		server: ServerNeed{
			// Only this shows whether the module is installed; query-spice always answers.
			Type: "chardev-spicevmc", Lacks: "QEMU has no SPICE server, or its module is not installed",
			Remedy: "install its module (Debian: package qemu-system-modules-spice, Fedora: qemu-ui-spice-core), or use display.vnc",
		},
		sockets: []socketRow{{SocketSPICE, "spice.sock", true}},
		agents:  []Agent{{"SPICE agent", SPICEAgentChannel, SPICEAgentChardev}},
	},
	{
		name: "vnc", build: (*builder).vnc, display: VNCProtocol,
		server:  ServerNeed{Command: "query-vnc-servers", Lacks: "QEMU was built without it", Remedy: "use display.spice"},
		sockets: []socketRow{{SocketVNC, "vnc.sock", true}},
	},
}

// ServerNeed is how to find out whether a QEMU has the server of a display.
type ServerNeed struct {
	Protocol DisplayProtocol
	// Type is a character device in QEMU's object model, and Command a QMP command, that only a
	// QEMU with the server has; one of them is empty.
	Type, Command string
	// Lacks describes what is missing and Remedy what to do, for display.
	Lacks, Remedy string
}

// ServerNeeds lists the servers of displays that a QEMU may lack.
func ServerNeeds() []ServerNeed {
	var out []ServerNeed
	for _, k := range kinds {
		if n := k.server; n != (ServerNeed{}) {
			n.Protocol = k.display
			out = append(out, n)
		}
	}
	return out
}

func knownModels() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.models...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p SocketPurpose) row() socketRow {
	for _, k := range kinds {
		for _, s := range k.sockets {
			if s.purpose == p {
				return s
			}
		}
	}
	return socketRow{}
}

// FileName is the name of a socket of this purpose in a machine's runtime directory; "" for an
// unknown purpose. Those of shares have a number appended, see [ShareSocketName].
func (p SocketPurpose) FileName() string { return p.row().name }

// Shared reports whether the machine's user and their tools connect to sockets of this purpose;
// others belong to the process that runs QEMU.
func (p SocketPurpose) Shared() bool { return p.row().shared }

// SocketPurposes lists all purposes.
func SocketPurposes() []SocketPurpose {
	var out []SocketPurpose
	for _, k := range kinds {
		for _, s := range k.sockets {
			out = append(out, s.purpose)
		}
	}
	return out
}

// RuntimeFiles lists the names of all sockets and files that a machine may have in its runtime
// directory.
func RuntimeFiles() []string {
	var out []string
	for _, k := range kinds {
		for _, s := range k.sockets {
			if s.purpose != SocketShare {
				out = append(out, s.name)
				continue
			}
			for i := range limits.MaxShares {
				out = append(out, ShareSocketName(i))
			}
		}
		out = append(out, k.files...)
	}
	return out
}

// HelperNames lists the names of the processes that a QEMU may need beside it ([Helper.Name]),
// which are also those of their executables.
func HelperNames() []string {
	var out []string
	for _, k := range kinds {
		if k.helper != "" {
			out = append(out, k.helper)
		}
	}
	return out
}

// Agent is a program in the guest that the host communicates with.
type Agent struct {
	// Name is for display.
	Name string
	// Channel is the ID of its port in the guest, and Chardev the label of the character device
	// behind it.
	Channel, Chardev string
}

// Agents lists the agents that a machine may have channels for.
func Agents() []Agent {
	var out []Agent
	for _, k := range kinds {
		out = append(out, k.agents...)
	}
	return out
}
