package qemucmd

import (
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

const mebibyte = 1 << 20

func (b *builder) start() {
	b.add(
		Option{Flag: "-S", Why: "the guest starts when everything is prepared over QMP"},
		Option{Flag: "-no-user-config", Why: "a configuration file of the host must not change the machine"},
		Option{Flag: "-nodefaults", Why: "no network card, drive, port or display that is not listed here"},
	)
}

func (b *builder) runsBridgeHelper() bool {
	for _, n := range b.m.Networks {
		if n.Tap != nil && len(n.Tap.FDs) == 0 {
			return true
		}
	}
	return false
}

func (b *builder) sandbox() {
	spawn, why := "deny", "a guest that breaks out of QEMU finds most system calls closed"
	if b.runsBridgeHelper() {
		spawn, why = "allow", why+"; starting processes is open for the bridge helper"
	}
	b.add(Option{
		Flag: "-sandbox", HeadKey: "enable", Head: "on",
		Props: []Prop{
			{"obsolete", Str("deny")}, {"elevateprivileges", Str("deny")},
			{"spawn", Str(spawn)}, {"resourcecontrol", Str("deny")},
		},
		Why: why,
	})
}

func listen(s Socket) []Prop { return server(s, false) }

// server returns the properties of a socket on which QEMU listens, and where it waits for a client
// before it goes on to start.
func server(s Socket, wait bool) []Prop {
	address := Prop{"path", Str(s.Path)}
	if s.FD != 0 {
		address = Prop{"fd", FD(s.FD)}
	}
	return []Prop{address, {"server", Bool(true)}, {"wait", Bool(wait)}}
}

func (b *builder) monitor() {
	// While it starts, QEMU moves monitors to a thread of their own. A client that its main thread
	// accepts at that moment is read from by both, which ended QEMU 7.2 on busy hosts now and then
	// (json-parser.c: parse_object: Assertion). One that it waits for was accepted before.
	wait := b.m.Monitor.FD != 0
	b.chardev("socket", "charmonitor", "QEMU is controlled here", server(b.m.Monitor, wait)...)
	b.add(Option{
		Flag: "-mon", ID: "monitor",
		Props: []Prop{{"chardev", Ref("charmonitor")}, {"mode", Str("control")}},
		Why:   "control mode is QMP",
	})
	b.socket(SocketMonitor, b.m.Monitor)
	if t := b.m.ToolMonitor; t != nil {
		b.chardev("socket", "chartools", "people and their tools look at QEMU here", listen(*t)...)
		b.add(Option{
			Flag: "-mon", ID: "tools",
			Props: []Prop{{"chardev", Ref("chartools")}, {"mode", Str("control")}},
			Why:   "a monitor serves one client at a time",
		})
		b.socket(SocketToolMonitor, *t)
	}
}

func (b *builder) name() {
	if b.m.Name == "" {
		b.errorf("name", "a name must be given")
	}
	b.text("name", b.m.Name)
	b.invalid("uuid", b.m.UUID, limits.UUID(b.m.UUID))
	b.add(
		Option{
			Flag:  "-name",
			Props: []Prop{{"guest", Str(b.m.Name)}, {"debug-threads", Bool(true)}},
			Why:   "process and thread names tell which machine they belong to",
		},
		Option{Flag: "-uuid", Head: b.m.UUID, Why: "the guest's identity (SMBIOS system UUID)"},
	)
}

func (b *builder) global(driver, property, value, why string) {
	b.add(Option{
		Flag:  "-global",
		Props: []Prop{{"driver", Str(driver)}, {"property", Str(property)}, {"value", Str(value)}},
		Why:   why,
	})
}

func (b *builder) machine() {
	props := []Prop{
		{"usb", Bool(false)},
		{"vmport", Bool(false)},
		{"dump-guest-core", Bool(false)},
	}
	if b.secureBoot() {
		props = append(props, Prop{"smm", Bool(true)})
	}
	if b.usesUEFI() {
		props = append(props, Prop{"pflash0", Ref("fw-rom-device")}, Prop{"pflash1", Ref("fw-eeprom-device")})
	}
	props = append(props, Prop{"memory-backend", Ref("pc.ram")}, Prop{"hpet", Bool(false)})
	b.add(Option{
		Flag: "-machine", HeadKey: "type", Head: b.machineType.Name, Props: props,
		Why: "the versioned type keeps the guest's hardware stable; no VMware port, no USB 1 controller, no guest memory in core dumps, no HPET (guests waste time on it)",
	})
	if b.accel == AcceleratorKVM {
		b.global("kvm-pit", "lost_tick_policy", "delay", "a guest that was not scheduled gets its timer ticks late rather than in a burst")
	}
	b.global("ICH9-LPC", "disable_s3", "1", "a suspended guest looks dead from outside and nothing wakes it up")
	b.global("ICH9-LPC", "disable_s4", "1", "a hibernated guest would look like one that powered off")
}

func (b *builder) pflash() {
	if !b.usesUEFI() {
		return
	}
	code, vars := b.firmware.Code, b.m.Firmware.VarsPath
	b.text("firmware.code", code)
	b.path("firmware.varsPath", vars)
	b.file(File{Purpose: FileFirmwareCode, Path: code})
	b.blockdev("firmware.code", "file", "fw-rom-file", "the firmware's code, shared by all machines",
		Prop{"filename", Str(code)}, Prop{"read-only", Bool(true)})
	b.blockdev("firmware.code", "raw", "fw-rom-device", "flash 0",
		Prop{"read-only", Bool(true)}, Prop{"file", Ref("fw-rom-file")})
	b.blockdev("firmware.varsPath", "file", "fw-eeprom-file", "the machine's own UEFI variables",
		Prop{"filename", Str(b.open(File{Purpose: FileFirmwareVars, Path: vars, CopyFrom: b.firmware.Vars, Writable: true}, b.m.Firmware.VarsFD, varsSet))})
	b.blockdev("firmware.varsPath", "raw", "fw-eeprom-device", "flash 1, written by the firmware",
		Prop{"read-only", Bool(false)}, Prop{"file", Ref("fw-eeprom-file")})
	if b.secureBoot() {
		b.global("cfi.pflash01", "secure", "on", "only the firmware in SMM may write the variables; without it a guest could enroll keys")
	}
}

func (b *builder) boot() {
	if b.m.BootMenu {
		b.add(Option{Flag: "-boot", Props: []Prop{{"menu", Bool(true)}}, Why: "the firmware offers to choose the boot device"})
	}
}

func (b *builder) memory() {
	size := b.m.Memory.Size
	if size <= 0 {
		b.errorf("memory.size", "%d bytes: it must be more than 0", size)
		return
	}
	mib := (size-1)/mebibyte + 1
	if mib > 1<<43-1 {
		b.errorf("memory.size", "%d bytes cannot be rounded up to whole MiB", size)
		return
	}
	if b.sharesMemory() {
		b.object("memory-backend-memfd", "pc.ram", "the guest's memory, which the servers of shared folders read and write too",
			Prop{"size", Int(mib * mebibyte)}, Prop{"share", Bool(true)})
	} else {
		b.object("memory-backend-ram", "pc.ram", "the guest's memory",
			Prop{"size", Int(mib * mebibyte)})
	}
	b.add(Option{
		Flag: "-m", Head: Int(mib).String(),
		Why: "in MiB; QEMU refuses to start if it differs from the backend's size, so both are rounded up to whole MiB",
	})
}

func (b *builder) balloon() {
	b.device("memory", "virtio-balloon-pci", BalloonID,
		"memory that the guest does not use goes back to the host: on request, and as the guest frees it",
		at(slotBalloon, 0, Prop{"free-page-reporting", Bool(true)})...)
}

func (b *builder) tpm() {
	t := b.m.TPM
	if t == nil {
		return
	}
	b.path("tpm.stateDir", t.StateDir)
	b.chardev("socket", "chrtpm", "swtpm listens here", Prop{"path", Str(t.Socket)})
	b.add(Option{
		Flag: "-tpmdev", HeadKey: "type", Head: "emulator", ID: "tpm0",
		Props: []Prop{{"chardev", Ref("chrtpm")}},
		Why:   "the TPM is emulated by a process of its own",
	})
	b.device("tpm", "tpm-tis", "tpm-tis0", "the TPM as the guest sees it",
		Prop{"tpmdev", Ref("tpm0")})
	b.emulator(*t)
}

const swtpm = "swtpm"

func (b *builder) emulator(t TPM) {
	if b.h.SWTPM == "" {
		b.errorf("tpm", "the host has no swtpm (package swtpm)")
	}
	for _, p := range []struct{ field, path string }{{"tpm.socket", t.Socket}, {"tpm.stateDir", t.StateDir}} {
		if strings.Contains(p.path, ",") {
			b.errorf(p.field, "%q contains a comma, which swtpm would read as the end of the path", p.path)
		}
	}
	b.socket(SocketTPM, Socket{Path: t.Socket, FD: t.SocketFD})
	if t.SocketFD != 0 && t.SocketFD < 3 {
		b.errorf("tpm.socketFD", "%d is no descriptor that can be handed over: 0 to 2 are standard input and output", t.SocketFD)
	}
	control := "type=unixio,path=" + t.Socket + ",mode=0600"
	if t.SocketFD != 0 {
		control = "type=unixio,fd=" + strconv.Itoa(t.SocketFD)
	}
	b.helper(Helper{
		Name:       swtpm,
		Executable: b.h.SWTPM,
		Args: []string{
			"socket", "--tpm2",
			"--tpmstate", "dir=" + t.StateDir + ",mode=0600",
			"--ctrl", control,
			"--terminate",
		},
		Socket:   t.Socket,
		StateDir: t.StateDir,
	})
}

func (b *builder) processors() {
	model := b.m.CPU.Model
	if model == "" {
		model = "host"
	}
	b.invalid("cpu.model", model, limits.CPUModel(model))
	why := "the processor that the guest sees"
	name, features, _ := strings.Cut(model, ",")
	if qemu := limits.QEMUCPUModel(model); qemu != model {
		model, why = qemu, "the processor that the guest sees: "+name+", a level that processors of several generations and makers have in common"
	}
	if name == "host" && b.accel == AcceleratorTCG {
		model, why = "max", "everything that software emulation can do; it has no \"host\""
		if features != "" {
			model += "," + features
		}
	}
	t := b.cpu
	b.add(
		Option{Flag: "-cpu", Head: model, Why: why},
		Option{
			Flag: "-smp",
			Props: []Prop{
				{"cpus", Int(1)}, {"maxcpus", Int(t.maximum)},
				{"sockets", Int(t.sockets)}, {"dies", Int(t.dies)},
				{"cores", Int(t.cores)}, {"threads", Int(t.threads)},
			},
			Why: "one CPU at the start, the others are plugged; the topology is complete, so that it does not depend on a default of the machine type",
		},
	)
}

// defaultTranslationCache is TCG's tb-size in MiB. Guests run as fast as with QEMU's default of 1
// GiB, and take half the memory of the host.
const defaultTranslationCache = 128

// maxTranslationCache is QEMU's maximum in MiB, whatever tb-size is.
const maxTranslationCache = 2048

func (b *builder) accelerator() {
	size := b.m.TranslationCache
	if size < 0 || size > maxTranslationCache {
		b.errorf("translationCache", "%d MiB is out of range: it must be between 0 (the default) and %d", size, maxTranslationCache)
	}
	if size == 0 {
		size = defaultTranslationCache
	}
	o := Option{Flag: "-accel", HeadKey: "accel", Head: string(b.accel)}
	switch {
	case b.accel == AcceleratorTCG:
		o.Props = []Prop{{"thread", Str(translationThreads(b.cpu.maximum))}, {"tb-size", Int(size)}}
		o.Why = "software emulation, its translation cache (MiB) bounded; one thread for all CPUs, because with several QEMU goes on with code that a CPU has changed for another"
	case b.cpu.x2APIC():
		o.Props = []Prop{{"kernel-irqchip", Str("split")}}
		o.Why = "hardware virtualization; more than 255 APIC IDs need the IOMMU to remap interrupts, which only a split interrupt controller allows"
	default:
		o.Why = "hardware virtualization"
	}
	b.add(o)
}

// translationThreads is TCG's thread for a number of CPUs. With a thread per CPU, which is QEMU's
// default, QEMU may translate code while another CPU writes it, and keep the old translation: Linux
// guests, which change their code while they run, hang in it (seen with QEMU 7.2 and 10.0; see
// TestGuestThatChangesItsCode of package runner).
func translationThreads(cpus int) string {
	if cpus > 1 {
		return "single"
	}
	return "multi"
}

// iommu adds VM-Operator's IOMMU, except under software emulation with at most 255 APIC IDs, where
// no guest needs one: Linux guests on a busy host give up at "timer doesn't work through
// Interrupt-remapped IO-APIC", and a guest that ejects a CPU more often ends QEMU 7.2 (see step
// UnplugCPU of package live).
func (b *builder) iommu() {
	if b.accel == AcceleratorTCG && !b.cpu.x2APIC() {
		return
	}
	props := []Prop{{"device-iotlb", Bool(true)}}
	why := "guests can use DMA remapping, and nest virtual machines with devices"
	if b.cpu.x2APIC() {
		props = append(props, Prop{"intremap", Str("on")}, Prop{"eim", Str("on")})
		why += "; extended interrupt mode is what more than 255 APIC IDs need"
	}
	b.device("type", "intel-iommu", "", why, props...)
}

func (b *builder) rtc() {
	base, clock := b.m.RTC.Base, b.m.RTC.Clock
	if base == "" {
		base = "utc"
	}
	if clock == "" {
		clock = "rt"
	}
	b.invalid("rtc.base", base, limits.RTCBase(base))
	b.invalid("rtc.clock", clock, limits.RTCClock(clock))
	b.add(Option{
		Flag:  "-rtc",
		Props: []Prop{{"base", Str(base)}, {"clock", Str(clock)}, {"driftfix", Str("slew")}},
		Why:   "lost ticks of the clock are caught up, which Windows depends on",
	})
}

func (b *builder) kernel() {
	k := b.m.KernelBoot
	if k == nil {
		return
	}
	b.path("kernelBoot.kernel", k.Kernel)
	b.text("kernelBoot.initrd", k.Initrd)
	b.text("kernelBoot.args", k.Args)
	b.add(Option{
		Flag: "-kernel", Head: b.inherited(File{Purpose: FileKernel, Path: k.Kernel}, k.KernelFD),
		Why: "this kernel starts, instead of a boot loader on a disk",
	})
	if k.Initrd != "" {
		b.add(Option{
			Flag: "-initrd", Head: b.inherited(File{Purpose: FileInitrd, Path: k.Initrd}, k.InitrdFD),
			Why: "the kernel's first file system",
		})
	} else if k.InitrdFD != 0 {
		b.errorf("kernelBoot.initrdFD", "there is no file that it could be of")
	}
	if k.Args != "" {
		b.add(Option{Flag: "-append", Head: k.Args, Why: "the kernel's command line"})
	}
}

// inherited adds a file and returns the name by which QEMU opens it: its path, or its descriptor if
// the caller has opened it. QEMU's code for kernels knows no descriptor sets.
func (b *builder) inherited(f File, fd int) string {
	if fd != 0 {
		f.OpenedAs = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	b.file(f)
	if fd != 0 {
		return f.OpenedAs
	}
	return f.Path
}
