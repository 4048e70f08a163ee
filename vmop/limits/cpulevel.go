package limits

import (
	"slices"
	"strings"
)

// The levels of the x86-64 psABI, which processors of several generations and vendors have in
// common, as names of CPU models. QEMU has no models of these names; see [QEMUCPUModel]. Level 1 is
// what every x86-64 processor has (kvm64).
const (
	CPULevel2 = "x86-64-v2" // Nehalem, Opteron G4 and later
	CPULevel3 = "x86-64-v3" // Haswell, EPYC and later
	CPULevel4 = "x86-64-v4" // Skylake-Server, EPYC-Genoa and later
)

type cpuLevel struct {
	name     string
	features []string
}

// cpuLevels are the features that each level adds to the one before, by QEMU's names, from table
// 3.1 of the psABI, without OSXSAVE, which the guest enables. XSAVEOPT is not part of level 3, but
// all of its processors have it, and Linux 6.1 hangs early in its boot on software emulation with
// XSAVE alone (seen with QEMU 7.2.22).
var cpuLevels = []cpuLevel{
	{CPULevel2, []string{"cx16", "lahf-lm", "popcnt", "pni", "sse4.1", "sse4.2", "ssse3"}},
	{CPULevel3, []string{"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave", "xsaveopt"}},
	{CPULevel4, []string{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
}

// CPULevelOf returns the highest level that processors with the features have; empty if below level
// 2.
func CPULevelOf(features []string) string {
	hyphened := make([]string, len(features))
	for i, f := range features {
		hyphened[i] = strings.ReplaceAll(f, "_", "-") // libvirt has lahf_lm
	}
	level := ""
	for _, l := range cpuLevels {
		for _, f := range l.features {
			if !slices.Contains(hyphened, f) {
				return level
			}
		}
		level = l.name
	}
	return level
}

// QEMUCPUModel returns QEMU's form of a CPU model. A level, possibly with further features, becomes
// kvm64, the common denominator of all vendors, with the features of the level. All other models
// are returned unchanged.
func QEMUCPUModel(model string) string {
	name, more, further := strings.Cut(model, ",")
	last := slices.IndexFunc(cpuLevels, func(l cpuLevel) bool { return l.name == name })
	if last < 0 {
		return model
	}
	out := "kvm64"
	for _, l := range cpuLevels[:last+1] {
		out += ",+" + strings.Join(l.features, ",+")
	}
	if further {
		out += "," + more
	}
	return out
}
