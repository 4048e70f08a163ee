package spectest

import (
	"math/bits"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Machine generates what may stand under spec.vm.
func Machine() *rapid.Generator[*spec.Machine] { return machine(false) }

func machine(oneHost bool) *rapid.Generator[*spec.Machine] {
	return rapid.Custom(func(t *rapid.T) *spec.Machine {
		m := &spec.Machine{
			State:       rapid.SampledFrom([]spec.MachineState{"", spec.StateStopped, spec.StateRunning}).Draw(t, "state"),
			UseTPM:      rapid.Bool().Draw(t, "useTpm"),
			Firmware:    rapid.SampledFrom([]spec.Firmware{"", spec.FirmwareBIOS, spec.FirmwareUEFI, spec.FirmwareUEFI4M, spec.FirmwareSecure, spec.FirmwareSecure4M}).Draw(t, "firmware"),
			PanicDevice: rapid.SampledFrom([]spec.PanicDevice{"", spec.PanicDevicePCI, spec.PanicDeviceISA}).Draw(t, "panicDevice"),
			BootMenu:    rapid.Bool().Draw(t, "bootMenu"),
			Accelerator: rapid.SampledFrom([]spec.Accelerator{"", spec.AcceleratorAuto, spec.AcceleratorKVM, spec.AcceleratorTCG}).Draw(t, "accelerator"),
			MachineType: rapid.SampledFrom([]string{"", "q35", "pc-q35-7.2", "pc-q35-6.0"}).Draw(t, "machineType"),
			CPUModel: rapid.OneOf(
				rapid.SampledFrom([]string{"", "host", "max", "x86-64-v3", "x86-64-v2,+aes", "max,-avx2", "qemu64,+ssse3,hv-vendor-id=x"}),
				rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}(,[+-]?[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}(=[A-Za-z0-9_.:+-]{1,6})?){0,3}`),
			).Draw(t, "cpuModel"),
			RTCBase:  rapid.SampledFrom([]string{"", "utc", "localtime", "2026-06-17", "2026-06-17T16:01:21", "1970-01-01", "0001-02-03T04:05:06"}).Draw(t, "rtcBase"),
			RTCClock: rapid.SampledFrom([]spec.RTCClock{"", spec.RTCClockHost, spec.RTCClockRT, spec.RTCClockVM}).Draw(t, "rtcClock"),
		}
		if maybe(t, "powerdownTimeout") {
			m.PowerdownTimeout = drawTimeout(t, "powerdownTimeout")
		}
		if maybe(t, "machineUuid") {
			m.MachineUUID = rapid.StringMatching(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`).Draw(t, "machineUuid")
		}
		if maybe(t, "kernelBoot") {
			m.KernelBoot = &spec.KernelBoot{Kernel: File().Draw(t, "kernel")}
			if maybe(t, "initrd") {
				m.KernelBoot.Initrd = File().Draw(t, "initrd")
			}
			if maybe(t, "args") {
				m.KernelBoot.Args = Text().Draw(t, "args")
			}
		}
		drawCPUs(t, m)
		drawRAM(t, m)
		if maybe(t, "serial") {
			m.Serial = &spec.SerialConsole{Enabled: drawBool(t, "enabled")}
		}
		drawShares(t, m, oneHost)
		if oneHost {
			drawUSBDevices(t, m)
		}
		taken := ports{}
		drawDisplay(t, m, taken)
		drawNetworks(t, m, taken)
		drawDisks(t, m, oneHost)
		return m
	})
}

func drawCPUs(t *rapid.T, m *spec.Machine) {
	// Software emulation has no IDs for more.
	most := int32(limits.MaxCPUs)
	if m.Accelerator == spec.AcceleratorTCG {
		most = limits.MaxTCGAPICIDs
	}
	if rapid.Bool().Draw(t, "by topology") {
		m.CPUTopology = drawTopology(t, most)
	} else {
		n := rapid.OneOf(rapid.Int32Range(1, 64), rapid.Int32Range(1, most)).Draw(t, "maximumCpus")
		m.MaximumCPUs = &n
	}
	switch rapid.IntRange(0, 2).Draw(t, "has currentCpus") {
	case 1:
		m.CurrentCPUs = new(rapid.Int32Range(1, int32(m.MaxCPUs())).Draw(t, "currentCpus"))
	case 2:
		m.CurrentCPUs = new(int32(m.MaxCPUs()))
	}
}

// drawTopology draws a topology whose product is within a bound, also if each of its
// levels takes a power of two. The levels share the bound in any order, so that each can
// have all of it.
func drawTopology(t *rapid.T, most int32) *spec.CPUTopology {
	topology := &spec.CPUTopology{}
	levels := []*int32{&topology.Sockets, &topology.DiesPerSocket, &topology.CoresPerDie, &topology.ThreadsPerCore}
	first := rapid.IntRange(0, 3).Draw(t, "first level")
	room := int32(1) << (bits.Len32(uint32(most)) - 1)
	for i := range levels {
		level := levels[(first+i)%len(levels)]
		*level = rapid.OneOf(rapid.Int32Range(0, min(room, 8)), rapid.Int32Range(0, room)).Draw(t, "level")
		room >>= bits.Len32(uint32(max(*level, 1) - 1))
	}
	return topology
}

func drawRAM(t *rapid.T, m *spec.Machine) {
	const least = 4 << 20
	limit := int64(1e9) // the default
	if maybe(t, "maximumRam") {
		q := Bytes(least, 1<<50).Draw(t, "maximumRam")
		limit = q.Value()
		m.MaximumRAM = &q
	}
	if maybe(t, "currentRam") {
		q := Bytes(1, limit).Draw(t, "currentRam")
		m.CurrentRAM = &q
	}
}
