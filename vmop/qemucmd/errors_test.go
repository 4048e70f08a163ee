package qemucmd_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// TestBuildRefuses has one change to a valid machine per case, and the fields
// that must be named for it.
func TestBuildRefuses(t *testing.T) {
	type M = qemucmd.Machine
	type H = qemucmd.Host
	long := strings.Repeat("x", 200)
	user := &qemucmd.UserNetwork{}
	nic := func(n qemucmd.Network) func(*M, *H) {
		return func(m *M, _ *H) {
			if n.MAC == "" {
				n.MAC = "02:00:00:00:00:01"
			}
			m.Networks = []qemucmd.Network{n}
		}
	}
	forward := func(f qemucmd.HostForward) func(*M, *H) {
		return nic(qemucmd.Network{User: &qemucmd.UserNetwork{HostForwards: []qemucmd.HostForward{f}}})
	}
	disk := func(d ...qemucmd.Disk) func(*M, *H) { return func(m *M, _ *H) { m.Disks = d } }
	cd := func(image string) func(*M, *H) {
		return func(m *M, _ *H) { m.CDDrives = []qemucmd.CDDrive{{Image: image}} }
	}
	vnc := func(v qemucmd.VNC) func(*M, *H) {
		return func(m *M, _ *H) { m.Display = &qemucmd.Display{VNC: &v} }
	}
	spice := func(s qemucmd.SPICE) func(*M, *H) {
		return func(m *M, _ *H) { m.Display = &qemucmd.Display{SPICE: &s} }
	}
	fs := qemucmd.Share{Tag: "a", Dir: "/d", Socket: "/s"}
	share := func(s qemucmd.Share, more ...func(*M, *H)) func(*M, *H) {
		return func(m *M, h *H) {
			m.AddressMap, m.Shares = 2, []qemucmd.Share{s}
			for _, change := range more {
				change(m, h)
			}
		}
	}
	cpu := func(c qemucmd.CPU) func(*M, *H) { return func(m *M, _ *H) { m.CPU = c } }
	uefi := func(kind qemucmd.FirmwareKind, images ...qemucmd.FirmwareImage) func(*M, *H) {
		return func(m *M, h *H) {
			m.Firmware = qemucmd.Firmware{Kind: kind, VarsPath: "/vars"}
			h.Firmware = images
		}
	}
	for _, test := range []struct {
		name   string
		change func(*M, *H)
		want   string // field: part of the message; several are separated by newlines
	}{
		{"no name", func(m *M, _ *H) { m.Name = "" }, "name: must be given"},
		{"control character in the name", func(m *M, _ *H) { m.Name = "a\nb" }, "name: U+000A"},
		{"name that is not UTF-8", func(m *M, _ *H) { m.Name = "a\xff" }, "name: must be valid UTF-8"},
		{"name with a noncharacter", func(m *M, _ *H) { m.Name = "a\ufdd0" }, "name: U+FDD0"},
		{"no UUID", func(m *M, _ *H) { m.UUID = "" }, "uuid: must be a UUID"},
		{"map of addresses of a later version", func(m *M, _ *H) { m.AddressMap = 3 }, "addressMap: 3 is unknown"},
		{"generation that is none", func(m *M, _ *H) { m.AddressMap, m.GenerationID = 2, "auto" }, "generationID: must be a UUID"},
		{"UUID in braces", func(m *M, _ *H) { m.UUID = "{" + m.UUID + "}" }, "uuid: must be a UUID"},
		{"UUID with an option", func(m *M, _ *H) { m.UUID += ",x" }, "uuid: must be a UUID"},
		{"machine type that is not offered", func(m *M, _ *H) { m.Type = "pc-q35-99.0" }, "type: pc-q35-7.2, pc-q35-7.1"},
		{"machine type of another family", func(m *M, _ *H) { m.Type = "pc-i440fx-7.2" }, "type: no q35"},
		{"host without machine types", func(_ *M, h *H) { h.MachineTypes = nil }, "host.machineTypes: no q35"},
		{"host without QEMU", func(_ *M, h *H) { h.QEMU = "" }, "host.qemu: missing"},
		{"QEMU that is too old", func(_ *M, h *H) { h.Version = qemucmd.Version{Major: 7, Minor: 1, Micro: 9} }, "host.version: 7.1.9"},
		{"unknown accelerator", func(m *M, _ *H) { m.Accelerator = "hax" }, "accelerator: auto, kvm or tcg"},
		{"KVM that does not work", func(m *M, h *H) { m.Accelerator, h.KVM = "kvm", false }, "accelerator: no KVM guest was seen"},
		{"negative translation cache", func(m *M, _ *H) { m.TranslationCache = -1 }, "translationCache: -1"},
		{"excessive translation cache", func(m *M, _ *H) { m.TranslationCache = 4096 }, "translationCache: 2048"},
		{"CPU model with a space", cpu(qemucmd.CPU{Model: "host -enable-kvm"}), "cpu.model: host -enable-kvm"},
		{"CPU model with a quote", cpu(qemucmd.CPU{Model: `a"`}), "cpu.model: name of a QEMU CPU model"},
		{"negative cores", cpu(qemucmd.CPU{Cores: -1}), "cpu.cores: -1"},
		{"excessive topology", cpu(qemucmd.CPU{Sockets: 1 << 15, Cores: 1 << 15, Dies: 1 << 15, Threads: 1 << 15}), "cpu.maximum: 1152921504606846976"},
		{"topology that does not divide the maximum", cpu(qemucmd.CPU{Maximum: 6, Sockets: 4}), "cpu.maximum: 6 does not agree with the topology 4 sockets, which makes 4"},
		{"complete topology that is too small", cpu(qemucmd.CPU{Maximum: 8, Sockets: 1, Dies: 1, Cores: 2, Threads: 2}), "cpu.maximum: makes 4 CPUs"},
		{"more CPUs than the machine type has", cpu(qemucmd.CPU{Maximum: 289}), "cpu.maximum: 289 is more than the machine type pc-q35-7.2 has: 288"},
		{"more CPUs than software emulation has", func(m *M, h *H) { m.CPU.Maximum, h.KVM = 256, false }, "cpu.maximum: 255 APIC IDs"},
		{"more APIC IDs than software emulation has", func(m *M, h *H) { m.CPU, h.KVM = qemucmd.CPU{Sockets: 40, Cores: 5}, false }, "cpu.maximum: 200 CPUs in the topology 40 sockets x 1 dies x 5 cores x 1 threads need 317"},
		{"no memory", func(m *M, _ *H) { m.Memory.Size = 0 }, "memory.size: more than 0"},
		{"memory that cannot be rounded up", func(m *M, _ *H) { m.Memory.Size = 1<<63 - 1 }, "memory.size: rounded up"},
		{"unknown firmware", uefi("efi"), "firmware.kind: bios, uefi"},
		{"no firmware", uefi("uefi"), "firmware.kind: uefi needs UEFI code without Secure Boot and its variables; the host has none"},
		{"no 4 MiB firmware", uefi("uefi-4m", qemucmd.FirmwareImage{Code: "/small", Vars: "/v"}), "firmware.kind: 4 MiB layout; the host has uefi /small"},
		{"no secure firmware", uefi("secure", qemucmd.FirmwareImage{FourMiB: true, Code: "/plain", Vars: "/v"}), "firmware.kind: enrolled keys; the host has uefi-4m /plain"},
		{"UEFI without variables", func(m *M, _ *H) { m.Firmware = qemucmd.Firmware{} }, "firmware.varsPath: must be given"},
		{"RTC base", func(m *M, _ *H) { m.RTC.Base = "utc,clock=vm" }, "rtc.base: utc, localtime"},
		{"RTC date that does not exist", func(m *M, _ *H) { m.RTC.Base = "2026-02-30" }, "rtc.base: 2026-02-30"},
		{"RTC clock", func(m *M, _ *H) { m.RTC.Clock = "tsc" }, "rtc.clock: one of host, rt, vm"},
		{"TPM without swtpm", func(m *M, h *H) { m.TPM, h.SWTPM = &qemucmd.TPM{Socket: "/s", StateDir: "/d"}, "" }, "tpm: no swtpm"},
		{"TPM paths with commas", func(m *M, _ *H) { m.TPM = &qemucmd.TPM{Socket: "/s,t", StateDir: "/d,e"} }, "tpm.socket: comma\ntpm.stateDir: comma"},
		{"TPM without paths", func(m *M, _ *H) { m.TPM = &qemucmd.TPM{} }, "tpm.stateDir: must be given\ntpm.socket: must be given"},
		{"share of a machine without a place", share(qemucmd.Share{Tag: "a", Dir: "/d", Protocol: "9p"}, func(m *M, _ *H) { m.AddressMap = 1 }), "shares: only a new machine"},
		{"share without a tag", share(qemucmd.Share{Dir: "/d", Protocol: "9p"}), "shares[0].tag: must be a name"},
		{"share with an option", share(qemucmd.Share{Tag: "a,b=c", Dir: "/d", Protocol: "9p"}), "shares[0].tag: must be a name"},
		{"share of a relative path", share(qemucmd.Share{Tag: "a", Dir: "d", Protocol: "9p"}), "shares[0].dir: absolute"},
		{"share of a protocol that is none", share(qemucmd.Share{Tag: "a", Dir: "/d", Protocol: "nfs"}), "shares[0].protocol: virtiofs or 9p"},
		{"share of a tag that is taken", share(qemucmd.Share{Tag: "a", Dir: "/d", Protocol: "9p"}, func(m *M, _ *H) { m.Shares = append(m.Shares, m.Shares[0]) }), "shares[1].tag: shares[0]"},
		{"more shares than addresses", share(qemucmd.Share{Tag: "a", Dir: "/d", Protocol: "9p"}, func(m *M, _ *H) { m.Shares = slices.Repeat(m.Shares, 9) }), "shares: 9 shares"},
		{"share without a socket", share(qemucmd.Share{Tag: "a", Dir: "/d"}), "shares[0].socket: must be given"},
		{"share without virtiofsd", share(fs, func(_ *M, h *H) { h.VirtioFSD = qemucmd.VirtioFSD{} }), "shares[0]: no virtiofsd"},
		{"share by a former virtiofsd of a user", share(fs, func(_ *M, h *H) { h.VirtioFSD.Former = true }), "shares[0]: only root"},
		{"share for reading that cannot be enforced", share(qemucmd.Share{Tag: "a", Dir: "/d", Socket: "/s", ReadOnly: true}, func(_ *M, h *H) { h.VirtioFSD.ReadOnly = false }), "shares[0].readOnly: no protection"},
		{"share that cannot be confined", share(fs, func(_ *M, h *H) { h.VirtioFSD.Namespaces = false }), "shares[0]: namespaces"},
		{"share whose name the former virtiofsd would split", share(qemucmd.Share{Tag: "a", Dir: "/d,allow_root", Socket: "/s"}, func(_ *M, h *H) { h.VirtioFSD.Former, h.VirtioFSD.Root = true, true }), "shares[0].dir: would not take"},
		{"USB device of no number", func(m *M, _ *H) { m.USBDevices = []qemucmd.USBDevice{{Vendor: "951", Product: "1,a="}} }, "usbDevices[0].vendor: four hexadecimal\nusbDevices[0].product: four hexadecimal"},
		{"USB device twice", func(m *M, _ *H) { m.USBDevices = []qemucmd.USBDevice{{"09ab", "1666"}, {"09AB", "1666"}} }, "usbDevices[1]: is also usbDevices[0]"},
		{"nine USB devices", func(m *M, _ *H) { m.USBDevices = make([]qemucmd.USBDevice, 9) }, "usbDevices: 9 devices"},
		{"more USB devices than ports", func(m *M, h *H) {
			spice(qemucmd.SPICE{Port: 1, USBRedirects: 14})(m, h)
			m.USBDevices = []qemucmd.USBDevice{{"0951", "1666"}}
		}, "usbDevices: 14 ports"},
		{"USB device that QEMU has no module for", func(m *M, h *H) {
			h.Devices = slices.DeleteFunc(h.Devices, func(d string) bool { return d == "usb-host" })
			m.USBDevices = []qemucmd.USBDevice{{"0951", "1666"}}
		}, "usbDevices[0]: hw-usb-host"},
		{"panic device that is none", func(m *M, _ *H) { m.PanicDevice = "hyperv" }, "panicDevice: must be one of pvpanic-pci, pvpanic"},
		{"panic device that QEMU lacks", func(m *M, h *H) {
			h.Devices = slices.DeleteFunc(h.Devices, func(d string) bool { return d == "pvpanic" })
			m.PanicDevice = "pvpanic"
		}, "panicDevice: does not offer"},
		{"kernel boot without a kernel", func(m *M, _ *H) { m.KernelBoot = &qemucmd.KernelBoot{} }, "kernelBoot.kernel: must be given"},
		{"kernel arguments in lines", func(m *M, _ *H) { m.KernelBoot = &qemucmd.KernelBoot{Kernel: "/k", Args: "a\n"} }, "kernelBoot.args: U+000A"},
		{"kernel arguments that are too long", func(m *M, _ *H) {
			m.KernelBoot = &qemucmd.KernelBoot{Kernel: "/k", Args: strings.Repeat("x", 131072)}
		}, "kernel: 131072 bytes"},

		{"network without a kind", nic(qemucmd.Network{}), "networks[0]: exactly one"},
		{"network of two kinds", nic(qemucmd.Network{User: user, Tap: &qemucmd.TapNetwork{}}), "networks[0]: exactly one"},
		{"network without a MAC", func(m *M, _ *H) { m.Networks = []qemucmd.Network{{User: user}} }, "networks[0].mac: must be given"},
		{"MAC that is none", nic(qemucmd.Network{User: user, MAC: "52:54:00,x"}), "networks[0].mac: must be a MAC address"},
		{"MAC of eight bytes", nic(qemucmd.Network{User: user, MAC: "02:00:00:00:00:00:00:01"}), "networks[0].mac: must be a MAC address"},
		{"multicast MAC", nic(qemucmd.Network{User: user, MAC: "03:00:00:00:00:00"}), "networks[0].mac: multicast"},
		{"zero MAC", nic(qemucmd.Network{User: user, MAC: "00:00:00:00:00:00"}), "networks[0].mac: no interface's address"},
		{"equal MACs", func(m *M, _ *H) {
			m.Networks = []qemucmd.Network{{User: user, MAC: "02:00:00:00:00:0a"}, {User: user, MAC: "02-00-00-00-00-0A"}}
		}, "networks[1].mac: networks[0]"},
		{"network device of another bus", nic(qemucmd.Network{User: user, Device: "usb-net"}), "networks[0].device: virtio-net-pci"},
		{"network device with options", nic(qemucmd.Network{User: user, Device: "e1000,mac=x"}), "networks[0].device: e1000,mac=x"},
		{"network device that is not offered", func(m *M, h *H) {
			nic(qemucmd.Network{User: user, Device: "igb"})(m, h)
			h.Devices = []string{"virtio-net-pci"}
		}, "networks[0].device: igb"},
		{"bridge without a helper", func(m *M, h *H) { nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{}})(m, h); h.BridgeHelper = "" }, "networks[0].tap: qemu-bridge-helper"},
		{"bridge helper that QEMU would give to a shell", func(m *M, h *H) { nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{}})(m, h); h.BridgeHelper = "/a b" }, "networks[0].tap: in a shell"},
		{"bridge name", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{Bridge: "../br0"}}), "networks[0].tap.bridge: network interface"},
		{"bridge name that is too long", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{Bridge: "br01234567890123"}}), "networks[0].tap.bridge: network interface"},
		{"tap descriptor", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{FDs: []int{2}}}), "networks[0].tap.fds[0]: 0 to 2"},
		{"several queues of an old card", nic(qemucmd.Network{Device: "e1000e", Tap: &qemucmd.TapNetwork{FDs: []int{7, 8}}}), "networks[0].tap.fds: one queue"},
		{"vhost of some queues", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{FDs: []int{7, 8}, VhostFDs: []int{9}}}), "networks[0].tap.vhostFDs: 1 descriptors for 2 queues"},
		{"vhost descriptor twice", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{FDs: []int{7}, VhostFDs: []int{7}}}), "networks[0].tap.vhostFDs[0]: networks[0].tap.fds[0]"},
		{"MTU", nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{FDs: []int{7}, MTU: 67}}), "networks[0].tap.mtu: 68 to 65535"},
		{"descriptor used twice", func(m *M, h *H) {
			nic(qemucmd.Network{Tap: &qemucmd.TapNetwork{FDs: []int{3}}})(m, h)
			m.Monitor.FD = 3
		}, "networks[0].tap.fds[0]: monitor"},
		{"user network", nic(qemucmd.Network{User: &qemucmd.UserNetwork{Net: "10.0.0.0/30"}}), "networks[0].user.net: 4 to 29"},
		{"IPv6 user network", nic(qemucmd.Network{User: &qemucmd.UserNetwork{Net: "fd00::/64"}}), "networks[0].user.net: IPv4"},
		{"user network with a mask of holes", nic(qemucmd.Network{User: &qemucmd.UserNetwork{Net: "10.0.0.0/255.0.255.0"}}), "networks[0].user.net: IPv4"},
		{"forward of a protocol", forward(qemucmd.HostForward{Protocol: "sctp", HostPort: 1, GuestPort: 1}), "networks[0].user.hostForwards[0].protocol: one of tcp, udp"},
		{"forward from IPv6", forward(qemucmd.HostForward{HostAddress: "::1", HostPort: 1, GuestPort: 1}), "networks[0].user.hostForwards[0].hostAddress: must be an IPv4 address"},
		{"forward without ports", forward(qemucmd.HostForward{}), "networks[0].user.hostForwards[0].hostPort: 0 must be from 1 to 65535\nnetworks[0].user.hostForwards[0].guestPort: 0 must be from 1 to 65535"},
		{"forward of one port twice", nic(qemucmd.Network{User: &qemucmd.UserNetwork{HostForwards: []qemucmd.HostForward{{HostPort: 1, GuestPort: 1}, {HostPort: 1, GuestPort: 2}}}}), "networks[0].user.hostForwards[1].hostPort: hostForwards[0]"},
		{"too many networks", func(m *M, _ *H) { m.Networks = make([]qemucmd.Network, 73) }, "networks: for 72"},

		{"too many CD drives", func(m *M, _ *H) { m.CDDrives = make([]qemucmd.CDDrive, 7) }, "cdDrives: 6 ports"},
		{"CD of another scheme", cd("FTP://host/x"), "cdDrives[0].image: a URL with http, https or file"},
		{"CD with a URL that is none", cd("http://[x/%zz"), "cdDrives[0].image: is not a valid URL"},
		{"CD with a password", cd("https://me:secret@host/x"), "cdDrives[0].image: process list"},
		{"CD over HTTP without the driver", func(m *M, h *H) { cd("http://host/x")(m, h); h.BlockDrivers = []string{"file", "raw"} }, "cdDrives[0].image: qemu-block-extra"},
		{"disk without a source", disk(qemucmd.Disk{}), "disks[0]: exactly one"},
		{"disk with two sources", disk(qemucmd.Disk{File: "/f", Device: "/d"}), "disks[0]: exactly one"},
		{"disk of another format", disk(qemucmd.Disk{File: "/f", Format: "vmdk"}), "disks[0].format: raw or qcow2"},
		{"disk whose driver is not offered", func(m *M, h *H) {
			disk(qemucmd.Disk{File: "/f", Format: "qcow2"})(m, h)
			h.BlockDrivers = []string{"file"}
		}, "disks[0].format: qcow2"},
		{"serial of a disk that is too long", disk(qemucmd.Disk{File: "/f", Serial: "ä12345678901234567890"}), "disks[0].serial: 22 bytes"},
		{"equal serials", disk(qemucmd.Disk{File: "/f", Serial: "s"}, qemucmd.Disk{File: "/g", Serial: "s"}), "disks[1].serial: disks[0]"},
		{"a file with two writers", disk(qemucmd.Disk{File: "/f"}, qemucmd.Disk{File: "//f/."}), "disks[1].file: disks[0].file"},
		{"a device with two writers", disk(qemucmd.Disk{Device: "/f"}, qemucmd.Disk{Device: "/f"}), "disks[1].device: disks[0].device"},
		{"a disk that is also a CD", func(m *M, h *H) { disk(qemucmd.Disk{File: "/f"})(m, h); cd("/f")(m, h) }, "cdDrives[0].image: disks[0].file"},
		{"a disk that is also the seed", func(m *M, h *H) { disk(qemucmd.Disk{File: "/f"})(m, h); m.Seed = &qemucmd.Seed{File: "/f"} }, "seed.file: disks[0].file"},
		{"a seventh CD", func(m *M, _ *H) {
			m.CDDrives, m.AnswerCD = make([]qemucmd.CDDrive, 6), &qemucmd.AnswerCD{File: "/a"}
		}, "answerCD: there are 6 CD drives besides"},
		{"a CD of answers without a file", func(m *M, _ *H) { m.AnswerCD = &qemucmd.AnswerCD{} }, "answerCD.file: must be given"},
		{"seed without a file", func(m *M, _ *H) { m.Seed = &qemucmd.Seed{} }, "seed.file: must be given"},
		{"negative boot index", disk(qemucmd.Disk{File: "/f", BootIndex: new(-1)}), "disks[0].bootIndex: -1"},
		{"equal boot indexes", func(m *M, h *H) {
			disk(qemucmd.Disk{File: "/f", BootIndex: new(1)})(m, h)
			m.CDDrives = []qemucmd.CDDrive{{BootIndex: new(1)}}
		}, "disks[0].bootIndex: cdDrives[0]"},
		{"too many disks", disk(make([]qemucmd.Disk, 113)...), "disks: for 112"},

		{"outputs", func(m *M, _ *H) { m.Outputs = 17 }, "outputs: 1 to 16"},
		{"VNC without the server", func(m *M, h *H) { vnc(qemucmd.VNC{Socket: "/v"})(m, h); h.VNC = false }, "display.vnc: without VNC"},
		{"VNC without an address", vnc(qemucmd.VNC{Password: true}), "display.vnc.port: must be from 5900 to 65535"},
		{"VNC below its ports", vnc(qemucmd.VNC{Password: true, Port: 5899}), "display.vnc.port: must be from 5900 to 65535"},
		{"VNC with two addresses", vnc(qemucmd.VNC{Port: 5900, Socket: "/v"}), "display.vnc.socket: either"},
		{"VNC open to all", vnc(qemucmd.VNC{Port: 5900}), "display.vnc.address: without a password"},
		{"VNC open to a network", vnc(qemucmd.VNC{Port: 5900, Address: "192.0.2.1"}), "display.vnc.address: without a password"},
		{"a WebSocket open to all", vnc(qemucmd.VNC{Socket: "/v", Websocket: 5700}), "display.vnc.address: without a password"},
		{"brackets", vnc(qemucmd.VNC{Port: 5900, Password: true, Address: "[::1]"}), "display.vnc.address: without brackets"},
		{"one port twice", vnc(qemucmd.VNC{Port: 5900, Password: true, Websocket: 5900}), "display.vnc.websocket: not VNC's own"},
		{"SPICE without the server", func(m *M, h *H) { spice(qemucmd.SPICE{Port: 1})(m, h); h.SPICE = false }, "display.spice: no SPICE"},
		{"SPICE without an address", spice(qemucmd.SPICE{}), "display.spice.port: must be from 1 to 65535"},
		{"SPICE with two addresses", spice(qemucmd.SPICE{Port: 1, Socket: "/s"}), "display.spice.socket: either"},
		{"streaming video", spice(qemucmd.SPICE{Port: 1, StreamingVideo: "on"}), "display.spice.streamingVideo: one of off, all, filter"},
		{"USB redirections", spice(qemucmd.SPICE{Port: 1, USBRedirects: 15}), "display.spice.usbRedirects: must be from 0 to 14"},
		{"device that is not offered", func(_ *M, h *H) {
			h.Devices = slices.DeleteFunc(h.Devices, func(d string) bool { return d == "virtserialport" })
		}, "guestAgent: virtserialport"},

		{"no monitor", func(m *M, _ *H) { m.Monitor = qemucmd.Socket{} }, "monitor.path: must be given"},
		{"socket path that is too long", func(m *M, _ *H) { m.Serial = &qemucmd.Socket{Path: "/" + long} }, "serial.path: 201 bytes"},
		{"one path for two sockets", func(m *M, _ *H) { m.Serial = &m.Monitor }, "serial.path: monitor"},
		{"descriptor of a socket", func(m *M, _ *H) { m.GuestAgent = &qemucmd.Socket{FD: 1} }, "guestAgent.fd: 0 to 2"},
		{"descriptor of an empty drive", func(m *M, _ *H) { m.CDDrives = []qemucmd.CDDrive{{FD: 9}} }, "cdDrives[0].fd: no file"},
		{"descriptor of a URL", func(m *M, _ *H) { m.CDDrives = []qemucmd.CDDrive{{Image: "http://a/b", FD: 9}} }, "cdDrives[0].fd: no file"},
		{"descriptor of no initrd", func(m *M, _ *H) { m.KernelBoot = &qemucmd.KernelBoot{Kernel: "/k", InitrdFD: 9} }, "kernelBoot.initrdFD: no file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, h := small(), qemucmd.GenericHost()
			m.GuestAgent = &qemucmd.Socket{Path: "/qga"}
			test.change(&m, &h)
			cmd, err := qemucmd.Build(m, h)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(qemucmd.Command{}, cmd); diff != "" {
				t.Errorf("a command in spite of the error:\n%s", diff)
			}
			problems := qemucmd.Problems(err)
			var got []string
			for _, p := range problems {
				got = append(got, p.Error())
			}
			if joined := strings.Join(got, "\n"); joined != err.Error() {
				t.Errorf("problems %q are not the error %q", joined, err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Error("the password is in the message")
			}
			want := strings.Split(test.want, "\n")
			// A missing device or driver may be missed in more than one place.
			if len(got) < len(want) || len(got) > len(want) && !strings.Contains(test.name, "offered") && !strings.Contains(test.name, "driver") {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(want), err)
			}
			for _, w := range want {
				field, message, _ := strings.Cut(w, ": ")
				found := false
				for _, p := range problems {
					found = found || p.Field == field && strings.Contains(p.Message, message)
				}
				if !found {
					t.Errorf("no %q in:\n%s", w, err)
				}
			}
		})
	}
}

func TestBuildCollectsAllProblems(t *testing.T) {
	_, err := qemucmd.Build(qemucmd.Machine{Disks: make([]qemucmd.Disk, 2), Networks: make([]qemucmd.Network, 1)}, qemucmd.Host{})
	var fields []string
	for _, p := range qemucmd.Problems(fmt.Errorf("wrapped: %w", err)) {
		fields = append(fields, p.Field)
	}
	for _, want := range []string{"host.qemu", "host.machineTypes", "firmware.kind", "name", "uuid", "memory.size", "networks[0]", "networks[0].mac", "disks[0]", "disks[1]", "monitor.path", "firmware.varsPath"} {
		if !slices.Contains(fields, want) {
			t.Errorf("%s is missing in %q", want, fields)
		}
	}
	var first *qemucmd.Error
	if !errors.As(err, &first) {
		t.Error("errors.As does not find an *Error")
	}
	if qemucmd.Problems(nil) != nil || qemucmd.Problems(errors.New("other")) != nil {
		t.Error("problems where there are none")
	}
}

// TestBuildAcceptsLimits is the other side of the limits above.
func TestBuildAcceptsLimits(t *testing.T) {
	for name, change := range map[string]func(*qemucmd.Machine){
		"288 CPUs":        func(m *qemucmd.Machine) { m.CPU.Maximum = 288 },
		"16 outputs":      func(m *qemucmd.Machine) { m.Outputs = 16 },
		"20 byte serial":  func(m *qemucmd.Machine) { m.Disks = []qemucmd.Disk{{File: "/f", Serial: "12345678901234567890"}} },
		"shared CD image": func(m *qemucmd.Machine) { m.CDDrives = []qemucmd.CDDrive{{Image: "/x"}, {Image: "/x"}} },
		"107 byte socket": func(m *qemucmd.Machine) { m.Monitor.Path = "/" + strings.Repeat("x", 106) },
		"CD URL in capitals": func(m *qemucmd.Machine) {
			m.CDDrives = []qemucmd.CDDrive{{Image: "HTTPS://host/x"}}
		},
		"long path of a socket that is handed over": func(m *qemucmd.Machine) {
			m.Monitor = qemucmd.Socket{Path: "/" + strings.Repeat("x", 200), FD: 3}
		},
		"descriptor without a path": func(m *qemucmd.Machine) { m.Monitor = qemucmd.Socket{FD: 3} },
		"foreign code": func(m *qemucmd.Machine) {
			m.Firmware = qemucmd.Firmware{Kind: "secure", Code: "/my/code", VarsPath: "/vars"}
		},
	} {
		m := small()
		change(&m)
		if _, err := qemucmd.Build(m, qemucmd.GenericHost()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAboveEightBitAPICIDs follows QEMU's demands for more than 255 of them.
func TestAboveEightBitAPICIDs(t *testing.T) {
	m := small()
	m.CPU.Maximum = 256
	cmd := mustBuild(t, m, qemucmd.GenericHost())
	args := strings.Join(cmd.Args(), " ")
	for _, want := range []string{"-accel kvm,kernel-irqchip=split", `"driver":"intel-iommu","device-iotlb":true,"intremap":"on","eim":"on"`} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in %s", want, args)
		}
	}
}

// TestNoIOMMUInSoftwareEmulation: Linux guests on a busy host fail to boot with it.
func TestNoIOMMUInSoftwareEmulation(t *testing.T) {
	for accelerator, want := range map[qemucmd.Accelerator]bool{qemucmd.AcceleratorKVM: true, qemucmd.AcceleratorTCG: false} {
		m := small()
		m.Accelerator = accelerator
		cmd := mustBuild(t, m, qemucmd.GenericHost())
		if got := strings.Contains(strings.Join(cmd.Args(), " "), "intel-iommu"); got != want {
			t.Errorf("%s: an IOMMU is %v, want %v", accelerator, got, want)
		}
	}
}

// TestFirmwareChoice: the pair that belongs together, or none.
func TestFirmwareChoice(t *testing.T) {
	h := qemucmd.GenericHost()
	for _, test := range []struct {
		firmware         qemucmd.Firmware
		code, copiedFrom string
	}{
		{qemucmd.Firmware{}, "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"},
		{qemucmd.Firmware{Kind: "uefi-4m"}, "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"},
		{qemucmd.Firmware{Kind: "secure"}, "OVMF_CODE_4M.ms.fd", "OVMF_VARS_4M.ms.fd"},
		{qemucmd.Firmware{Kind: "secure-4m"}, "OVMF_CODE_4M.ms.fd", "OVMF_VARS_4M.ms.fd"},
		{qemucmd.Firmware{Code: "/usr/share/OVMF/OVMF_CODE.fd"}, "OVMF_CODE.fd", "OVMF_VARS.fd"},
		{qemucmd.Firmware{Code: "/usr/share/OVMF/mine"}, "mine", ""},
		// Code of the other kind has variables that do not belong to this one.
		{qemucmd.Firmware{Kind: "secure", Code: "/usr/share/OVMF/OVMF_CODE.fd"}, "OVMF_CODE.fd", ""},
	} {
		m := small()
		m.Firmware = test.firmware
		m.Firmware.VarsPath = "/vars"
		want := []qemucmd.File{
			{Purpose: qemucmd.FileFirmwareCode, Path: "/usr/share/OVMF/" + test.code},
			{Purpose: qemucmd.FileFirmwareVars, Path: "/vars", Writable: true},
		}
		if test.copiedFrom != "" {
			want[1].CopyFrom = "/usr/share/OVMF/" + test.copiedFrom
		}
		if diff := cmp.Diff(want, mustBuild(t, m, h).Files); diff != "" {
			t.Errorf("%+v:\n%s", test.firmware, diff)
		}
	}
}

func TestMachineTypeIsVersioned(t *testing.T) {
	h := qemucmd.GenericHost()
	for _, test := range []struct{ given, want string }{{"", "pc-q35-7.2"}, {"q35", "pc-q35-7.2"}, {"pc-q35-6.2", "pc-q35-6.2"}} {
		m := small()
		m.Type = test.given
		if got := mustBuild(t, m, h).MachineType; got != test.want {
			t.Errorf("%q: %s", test.given, got)
		}
	}
	// Without the alias, as numbers: 10 is more than 9.
	h.MachineTypes = []qemucmd.MachineType{{Name: "pc-q35-9.2"}, {Name: "pc-q35-10.0"}, {Name: "pc-q35-7.2"}}
	if got := mustBuild(t, small(), h).MachineType; got != "pc-q35-10.0" {
		t.Errorf("newest is %s", got)
	}
}
