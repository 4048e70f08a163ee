package qemucmd

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

func (b *builder) chooseAccelerator() Accelerator {
	switch a := b.m.Accelerator; a {
	case "", AcceleratorAuto:
		if b.h.KVM {
			return AcceleratorKVM
		}
		return AcceleratorTCG
	case AcceleratorKVM:
		if !b.h.KVM {
			b.errorf("accelerator", "kvm is demanded, but no KVM guest was seen to execute on this host; use auto or tcg for software emulation, or give access to a /dev/kvm that works")
		}
		return a
	case AcceleratorTCG:
		return a
	default:
		b.errorf("accelerator", "%q is unknown: it must be auto, kvm or tcg", a)
		return AcceleratorTCG
	}
}

func (b *builder) usesUEFI() bool { return b.m.Firmware.Kind != FirmwareBIOS }

func (b *builder) secureBoot() bool {
	return b.m.Firmware.Kind == FirmwareSecure || b.m.Firmware.Kind == FirmwareSecure4M
}

func (b *builder) chooseFirmware() FirmwareImage {
	f := b.m.Firmware
	var fourMiB bool
	switch f.Kind {
	case FirmwareBIOS:
		return FirmwareImage{}
	case "", FirmwareUEFI, FirmwareSecure:
	case FirmwareUEFI4M, FirmwareSecure4M:
		fourMiB = true
	default:
		b.errorf("firmware.kind", "%q is unknown: it must be bios, uefi, uefi-4m, secure or secure-4m", f.Kind)
		return FirmwareImage{}
	}
	if f.Code != "" {
		// The variables must be those that belong to this code, or exist already.
		for _, image := range b.h.Firmware {
			if image.Code == f.Code && image.Secure == b.secureBoot() {
				return image
			}
		}
		return FirmwareImage{Code: f.Code}
	}
	var offered []string
	for _, image := range b.h.Firmware {
		if image.Secure == b.secureBoot() && (!fourMiB || image.FourMiB) {
			return image
		}
		offered = append(offered, describe(image))
	}
	want := "UEFI code without Secure Boot and its variables"
	if b.secureBoot() {
		want = "UEFI code with Secure Boot and variables with enrolled keys"
	}
	if fourMiB {
		want += " in the 4 MiB layout"
	}
	b.errorf("firmware.kind", "%s needs %s; the host has %s (packages: ovmf on Debian and Alpine, edk2-ovmf on Fedora and Arch)",
		cmp.Or(f.Kind, FirmwareUEFI), want, list(offered))
	return FirmwareImage{}
}

func describe(f FirmwareImage) string {
	kind := "uefi"
	if f.Secure {
		kind = "secure"
	}
	if f.FourMiB {
		kind += "-4m"
	}
	return kind + " " + f.Code
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// maxTopology bounds each part so that the products cannot overflow; QEMU's own limit is far below.
const maxTopology = 1 << 15

// chooseTopology completes the topology; see [Build] for the rule.
func (b *builder) chooseTopology() topology {
	c := b.m.CPU
	t := topology{c.Maximum, c.Sockets, c.Dies, c.Cores, c.Threads}
	valid := true
	for _, p := range []struct {
		field string
		n     int
	}{
		{"cpu.maximum", c.Maximum}, {"cpu.sockets", c.Sockets}, {"cpu.dies", c.Dies},
		{"cpu.cores", c.Cores}, {"cpu.threads", c.Threads},
	} {
		if p.n < 0 || p.n > maxTopology {
			b.errorf(p.field, "%d is out of range: it must be between 0 and %d", p.n, maxTopology)
			valid = false
		}
	}
	if !valid {
		return topology{1, 1, 1, 1, 1}
	}
	given := int64(1)
	for _, n := range []int{t.sockets, t.dies, t.cores, t.threads} {
		given *= int64(max(n, 1)) // at most 2^60
	}
	if t.maximum == 0 {
		if given > maxTopology {
			b.errorf("cpu.maximum", "the topology %s makes %d CPUs, more than any machine type has", t, given)
			return topology{1, 1, 1, 1, 1}
		}
		t.maximum = int(given)
	}
	rest := 1
	if int64(t.maximum)%given == 0 {
		rest = int(int64(t.maximum) / given)
	}
	for _, p := range []*int{&t.cores, &t.sockets, &t.threads, &t.dies} {
		if *p == 0 {
			*p, rest = rest, 1
		}
	}
	if rest != 1 || int64(t.maximum)%given != 0 {
		b.errorf("cpu.maximum", "%d does not agree with the topology %s, which makes %d CPUs", t.maximum, topology{0, c.Sockets, c.Dies, c.Cores, c.Threads}, given)
		return topology{1, 1, 1, 1, 1}
	}
	if limit := b.machineType.MaxCPUs; limit > 0 && t.maximum > limit {
		b.errorf("cpu.maximum", "%d is more than the machine type %s has: %d", t.maximum, b.machineType.Name, limit)
	} else if t.x2APIC() && b.accel == AcceleratorTCG {
		b.errorf("cpu.maximum", "software emulation has no more than %d APIC IDs, and %d CPUs in the topology %s need %d", limits.MaxTCGAPICIDs, t.maximum, t, t.apicIDs())
	}
	return t
}

func (t topology) String() string {
	var s []string
	for _, p := range []struct {
		n    int
		name string
	}{{t.sockets, "sockets"}, {t.dies, "dies"}, {t.cores, "cores"}, {t.threads, "threads"}} {
		if p.n > 0 {
			s = append(s, strconv.Itoa(p.n)+" "+p.name)
		}
	}
	if len(s) == 0 {
		return "1 core"
	}
	return strings.Join(s, " x ")
}

func (t topology) apicIDs() int64 { return limits.APICIDs(t.sockets, t.dies, t.cores, t.threads) }

// x2APIC reports whether the CPUs need IDs of more than eight bits, for which QEMU demands an IOMMU
// that remaps interrupts in extended mode.
func (t topology) x2APIC() bool { return t.apicIDs() > limits.MaxTCGAPICIDs }
