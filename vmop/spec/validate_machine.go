package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func validateMachine(m *Machine, name string, path spot) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("state"), m.State, StateStopped, StateRunning)...)
	if m.MachineUUID != "" {
		errs = append(errs, limited(path.Child("machineUuid"), m.MachineUUID, limits.UUID(m.MachineUUID))...)
	}
	errs = append(errs, oneOf(path.Child("firmware"), m.Firmware,
		FirmwareBIOS, FirmwareUEFI, FirmwareUEFI4M, FirmwareSecure, FirmwareSecure4M)...)
	if m.KernelBoot != nil {
		errs = append(errs, validateKernelBoot(m.KernelBoot, path.Child("kernelBoot"))...)
	}
	errs = append(errs, inRange(path.Child("powerdownTimeout"), int64(*m.PowerdownTimeout), 0, limits.MaxPowerdownTimeout)...)
	errs = append(errs, oneOf(path.Child("accelerator"), m.Accelerator, AcceleratorAuto, AcceleratorKVM, AcceleratorTCG)...)
	if m.MachineType != "" {
		errs = append(errs, limited(path.Child("machineType"), m.MachineType, limits.MachineType(m.MachineType))...)
	}
	errs = append(errs, limited(path.Child("cpuModel"), m.CPUModel, limits.CPUModel(m.CPUModel))...)
	errs = append(errs, validateCPUs(m, path)...)
	errs = append(errs, validateRAM(m, path)...)
	errs = append(errs, validateClock(m, path)...)
	if m.PanicDevice != "" {
		errs = append(errs, oneOf(path.Child("panicDevice"), m.PanicDevice, PanicDevicePCI, PanicDeviceISA)...)
	}
	errs = append(errs, validateNetworks(m, path.Child("networks"))...)
	errs = append(errs, validateDisks(m.Disks, name, path.Child("disks"))...)
	errs = append(errs, validateShares(m, name, path)...)
	errs = append(errs, validateUSBDevices(m, path.Child("usbDevices"))...)
	return append(errs, validateDisplay(m.Display, path.Child("display"))...)
}

func inRange(path spot, value, least, most int64) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{invalidAt(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
}

func validateKernelBoot(k *KernelBoot, path spot) field.ErrorList {
	var errs field.ErrorList
	if k.Kernel == "" {
		errs = append(errs, requiredAt(path.Child("kernel"), "direct kernel boot needs a kernel"))
	} else {
		errs = append(errs, validateBootFile(k.Kernel, path.Child("kernel"))...)
	}
	if k.Initrd != "" {
		errs = append(errs, validateBootFile(k.Initrd, path.Child("initrd"))...)
	}
	errs = append(errs, validateLine(k.Args, path.Child("args"))...)
	if len(k.Args) > limits.MaxKernelArgs {
		errs = append(errs, tooLongAt(path.Child("args"), k.Args, limits.MaxKernelArgs))
	}
	return errs
}

// validateBootFile checks the name of a kernel or initrd, which QEMU reads
// itself and not through a block driver that knows URLs.
func validateBootFile(name string, at spot) field.ErrorList {
	if _, isURL := limits.URLScheme(name); isURL {
		return field.ErrorList{invalidAt(at, name, "is a URL; name a file of the image repository")}
	}
	return validateFile(name, "the image repository", at)
}

// validateCPUs checks the numbers of CPUs against each other. QEMU refuses a
// topology whose product is not the maximum, so the product is the maximum.
func validateCPUs(m *Machine, path spot) field.ErrorList {
	var errs field.ErrorList
	switch {
	case m.MaximumCPUs == nil && m.CPUTopology == nil:
		errs = append(errs, requiredAt(path.Child("maximumCpus"), "give exactly one of maximumCpus and cpuTopology; there is none"))
	case m.MaximumCPUs != nil && m.CPUTopology != nil:
		errs = append(errs, forbiddenAt(path.Child("cpuTopology"), "give exactly one of maximumCpus and cpuTopology; the topology's product is the maximum"))
	}
	if m.MaximumCPUs != nil {
		errs = append(errs, inRange(path.Child("maximumCpus"), int64(*m.MaximumCPUs), 1, limits.MaxCPUs)...)
	}
	if t := m.CPUTopology; t != nil {
		at := path.Child("cpuTopology")
		before := len(errs)
		errs = append(errs, inRange(at.Child("sockets"), int64(t.Sockets), 0, limits.MaxCPUs)...)
		errs = append(errs, inRange(at.Child("diesPerSocket"), int64(t.DiesPerSocket), 0, limits.MaxCPUs)...)
		errs = append(errs, inRange(at.Child("coresPerDie"), int64(t.CoresPerDie), 0, limits.MaxCPUs)...)
		errs = append(errs, inRange(at.Child("threadsPerCore"), int64(t.ThreadsPerCore), 0, limits.MaxCPUs)...)
		if n := m.MaxCPUs(); len(errs) == before && m.MaximumCPUs == nil && n > limits.MaxCPUs {
			errs = append(errs, invalidAt(at, n, fmt.Sprintf("the product of sockets, dies, cores and threads must be at most %d", limits.MaxCPUs)))
		}
	}
	if n := apicIDs(m); len(errs) == 0 && m.Accelerator == AcceleratorTCG && n > limits.MaxTCGAPICIDs {
		errs = append(errs, invalidAt(path, n, fmt.Sprintf("software emulation (accelerator: tcg) has IDs for %d CPUs, and these need %d; each of sockets, dies, cores and threads takes a power of two", limits.MaxTCGAPICIDs, n)))
	}
	if m.CurrentCPUs == nil {
		return errs
	}
	at := path.Child("currentCpus")
	current := int64(*m.CurrentCPUs)
	switch {
	case current < 1:
		errs = append(errs, invalidAt(at, current, "must be at least 1"))
	case m.MaximumCPUs != nil && current > int64(*m.MaximumCPUs):
		errs = append(errs, invalidAt(at, current, fmt.Sprintf("must not be greater than maximumCpus, which is %d", *m.MaximumCPUs)))
	case m.MaximumCPUs == nil && m.CPUTopology != nil && current > m.MaxCPUs():
		errs = append(errs, invalidAt(at, current, fmt.Sprintf("must not be greater than the product of cpuTopology, which is %d", m.MaxCPUs())))
	}
	return errs
}

// apicIDs is [limits.APICIDs] of a machine whose numbers are within their limits.
func apicIDs(m *Machine) int64 {
	if t := m.CPUTopology; t != nil {
		part := func(n int32) int { return int(min(max(n, 1), limits.MaxCPUs)) }
		return limits.APICIDs(part(t.Sockets), part(t.DiesPerSocket), part(t.CoresPerDie), part(t.ThreadsPerCore))
	}
	return m.MaxCPUs()
}

func validateRAM(m *Machine, path spot) field.ErrorList {
	errs := validateBytes(*m.MaximumRAM, path.Child("maximumRam"))
	if len(errs) == 0 && m.MaximumRAM.CmpInt64(limits.MinRAM) < 0 {
		errs = append(errs, invalidAt(path.Child("maximumRam"), m.MaximumRAM.String(),
			"must be at least 4Mi; sizes are bytes unless they have a suffix such as Mi or Gi"))
	}
	if len(errs) == 0 && m.MaximumRAM.CmpInt64(limits.MaxRAM) > 0 {
		errs = append(errs, invalidAt(path.Child("maximumRam"), m.MaximumRAM.String(), "cannot be rounded up to whole MiB in 63 bits"))
	}
	if m.CurrentRAM == nil {
		return errs
	}
	at := path.Child("currentRam")
	if more := validateBytes(*m.CurrentRAM, at); len(more) > 0 {
		return append(errs, more...)
	}
	if CompareQuantities(*m.CurrentRAM, *m.MaximumRAM) > 0 {
		errs = append(errs, invalidAt(at, m.CurrentRAM.String(),
			"must not be greater than maximumRam, which is "+inUnitsOf(*m.MaximumRAM)))
	}
	return errs
}

// inUnitsOf shows a size as it was written and, because 1G and 1Gi differ by
// 7 percent, also in bytes.
func inUnitsOf(q resource.Quantity) string {
	return fmt.Sprintf("%s (%d bytes)", q.String(), Bytes(q))
}

func validateClock(m *Machine, path spot) field.ErrorList {
	errs := oneOf(path.Child("rtcClock"), m.RTCClock, RTCClockHost, RTCClockRT, RTCClockVM)
	return append(errs, limited(path.Child("rtcBase"), m.RTCBase, limits.RTCBase(m.RTCBase))...)
}
