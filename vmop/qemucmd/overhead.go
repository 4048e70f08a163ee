package qemucmd

// Overhead is the memory in bytes that a running machine needs beside its guest's RAM, by consumer.
// See [MemoryOverhead].
type Overhead struct {
	// Emulator is QEMU with the devices that every machine has, and its supervisor (package
	// runner).
	Emulator int64 `json:"emulator"`
	// Firmware is the UEFI code and variables.
	Firmware int64 `json:"firmware"`
	// PageTables are the host's tables and bitmaps for the guest's RAM.
	PageTables int64 `json:"pageTables"`
	// CPUs are the threads and the state of all CPUs that the machine can have.
	CPUs int64 `json:"cpus"`
	// Translation is the translation cache of software emulation.
	Translation int64 `json:"translation"`
	// Disks are the caches and queues of disks and drives.
	Disks int64 `json:"disks"`
	// Networks are the buffers of network cards and their back ends.
	Networks int64 `json:"networks"`
	// Display is the graphics adapter with its monitors, and the servers.
	Display int64 `json:"display"`
	// Helpers are the processes beside QEMU.
	Helpers int64 `json:"helpers"`
}

// Total is the sum of the parts.
func (o Overhead) Total() int64 {
	return o.Emulator + o.Firmware + o.PageTables + o.CPUs + o.Translation + o.Disks + o.Networks + o.Display + o.Helpers
}

// Memory of the parts. Those of the emulator, the firmware, the network and the helpers were
// measured with QEMU 7.2 and the machines of BenchmarkMemoryOverhead, and rounded up. Those of CPUs
// under KVM, of displays with viewers and of qcow2 images follow from QEMU's allocations and were
// not measured.
const (
	overheadQEMU   = 56 * mebibyte
	overheadRunner = 16 * mebibyte // 9 to 10 when idle
	overheadUEFI   = 24 * mebibyte

	overheadCPU = 1 * mebibyte
	// overheadTranslatedCPU includes the page tables of software emulation.
	overheadTranslatedCPU = 6 * mebibyte

	// overheadDisk is for a full queue of requests that must be copied.
	overheadDisk = 2 * mebibyte
	// overheadQCOW2 is QEMU's default maximum of l2-cache-size, reached when the guest has touched
	// 256 GiB of an image.
	overheadQCOW2 = 32 * mebibyte

	overheadTap  = 1 * mebibyte
	overheadUser = 4 * mebibyte

	// overheadAdapter is the memory of a VGA adapter, and overheadOutput a monitor's picture in 4K:
	// 3840 × 2160 × 4 bytes.
	overheadAdapter = 16 * mebibyte
	overheadOutput  = 32 * mebibyte
	// overheadServer is what a server needs besides another copy of each picture.
	overheadServer   = 16 * mebibyte
	overheadRedirect = 1 * mebibyte

	overheadTPM = 12 * mebibyte // swtpm has 7
	// overheadShare is for virtiofsd with a few thousand files open.
	overheadShare = 16 * mebibyte

	// pageTableShare is the size of a page divided by that of its entry.
	pageTableShare = 4096 / 8
	// bitmapShare is the number of bytes per bit of a bitmap, and bitmaps the number of QEMU's
	// bitmaps: of the display, of translated code, of migration.
	bitmapShare, bitmaps = 4096 * 8, 3
)

// MemoryOverhead returns the memory that the machine m needs beside its guest's RAM, on a host like
// h, of which only KVM counts. It is meant for reserving memory: a machine stays below it in
// ordinary use, with all of its RAM touched and a viewer at every display. A guest can exceed it: a
// graphics adapter may take [Machine.Outputs] times 256 MiB.
//
// Where the kernel backs the RAM with huge pages, PageTables is more than needed.
func MemoryOverhead(m Machine, h Host) Overhead {
	emulated := m.Accelerator == AcceleratorTCG || m.Accelerator != AcceleratorKVM && !h.KVM
	o := Overhead{Emulator: overheadQEMU + overheadRunner}
	if m.Firmware.Kind != FirmwareBIOS {
		o.Firmware = overheadUEFI
	}
	o.PageTables = m.Memory.Size/pageTableShare + m.Memory.Size/bitmapShare*bitmaps
	cpus := int64(max(m.CPU.Maximum, max(m.CPU.Sockets, 1)*max(m.CPU.Dies, 1)*max(m.CPU.Cores, 1)*max(m.CPU.Threads, 1)))
	if emulated {
		o.CPUs = cpus * overheadTranslatedCPU
		size := m.TranslationCache
		if size == 0 {
			size = defaultTranslationCache
		}
		// The code in the cache is indexed besides.
		o.Translation = size * mebibyte * 5 / 4
	} else {
		o.CPUs = cpus * overheadCPU
		o.PageTables += m.Memory.Size / pageTableShare // the processor's own
	}
	o.Disks = int64(len(m.CDDrives)+len(m.Disks)) * overheadDisk
	if m.Seed != nil {
		o.Disks += overheadDisk
	}
	if m.AnswerCD != nil {
		o.Disks += overheadDisk
	}
	for _, d := range m.Disks {
		if d.Format == DiskFormatQCOW2 {
			o.Disks += overheadQCOW2
		}
	}
	for _, n := range m.Networks {
		if n.User != nil {
			o.Networks += overheadUser
		} else {
			o.Networks += overheadTap
		}
	}
	o.Display = displayOverhead(m)
	if m.TPM != nil {
		o.Helpers = overheadTPM
	}
	for _, s := range m.Shares {
		if s.Protocol != Share9P {
			o.Helpers += overheadShare
		}
	}
	return o
}

func displayOverhead(m Machine) int64 {
	pictures := int64(max(m.Outputs, 1)) * overheadOutput
	sum := overheadAdapter + pictures
	for s := range m.Display.servers {
		sum += overheadServer + pictures + s.overhead()
	}
	return sum
}
