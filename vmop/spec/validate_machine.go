package spec

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxCPUs is a bound that no machine type of QEMU exceeds; the type's own
	// bound is lower and known only to the QEMU that runs it.
	maxCPUs = 4096
	// minRAM is less than any firmware needs, and more than what somebody
	// writes who forgot the suffix.
	minRAM = 4 << 20
	// maxKernelArgs is what Linux keeps of a command line (COMMAND_LINE_SIZE
	// without the final NUL on x86 and arm64); it cuts off the rest silently.
	maxKernelArgs = 2047
	// maxPowerdownTimeout is what milliseconds in 31 bits can hold.
	maxPowerdownTimeout = 2147483
	maxOutputs          = 16
	// maxUsbRedirects are the ports of the machine's USB controller that the
	// tablet leaves.
	maxUsbRedirects = 14
)

func validateMachine(m *Machine, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("state"), m.State, StateStopped, StateRunning)...)
	if m.MachineUUID != "" {
		errs = append(errs, validateMatch(m.MachineUUID, uuidPattern(),
			"must be a UUID such as 6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11", path.Child("machineUuid"))...)
	}
	errs = append(errs, oneOf(path.Child("firmware"), m.Firmware,
		FirmwareBIOS, FirmwareUEFI, FirmwareUEFI4M, FirmwareSecure, FirmwareSecure4M)...)
	if m.KernelBoot != nil {
		errs = append(errs, validateKernelBoot(m.KernelBoot, path.Child("kernelBoot"))...)
	}
	errs = append(errs, inRange(path.Child("powerdownTimeout"), int64(*m.PowerdownTimeout), 0, maxPowerdownTimeout)...)
	errs = append(errs, oneOf(path.Child("accelerator"), m.Accelerator, AcceleratorAuto, AcceleratorKVM, AcceleratorTCG)...)
	if m.MachineType != "" {
		errs = append(errs, validateMatch(m.MachineType, typePattern(),
			"must be the name of a QEMU machine type such as pc-q35-7.2", path.Child("machineType"))...)
	}
	errs = append(errs, validateMatch(m.CPUModel, cpuPattern(),
		"must be the name of a QEMU CPU model, possibly with features, such as host or max,-avx2", path.Child("cpuModel"))...)
	errs = append(errs, validateCPUs(m, path)...)
	errs = append(errs, validateRAM(m, path)...)
	errs = append(errs, validateClock(m, path)...)
	errs = append(errs, validateNetworks(m, path.Child("networks"))...)
	errs = append(errs, validateDisks(m.Disks, name, path.Child("disks"))...)
	return append(errs, validateDisplay(m.Display, path.Child("display"))...)
}

func inRange(path *field.Path, value, least, most int64) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
}

func validateKernelBoot(k *KernelBoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if k.Kernel == "" {
		errs = append(errs, field.Required(path.Child("kernel"), "direct kernel boot needs a kernel"))
	} else {
		errs = append(errs, validateBootFile(k.Kernel, path.Child("kernel"))...)
	}
	if k.Initrd != "" {
		errs = append(errs, validateBootFile(k.Initrd, path.Child("initrd"))...)
	}
	errs = append(errs, validateLine(k.Args, path.Child("args"))...)
	if len(k.Args) > maxKernelArgs {
		errs = append(errs, field.TooLong(path.Child("args"), k.Args, maxKernelArgs))
	}
	return errs
}

// validateBootFile checks the name of a kernel or initrd, which QEMU reads
// itself and not through a block driver that knows URLs.
func validateBootFile(name string, at *field.Path) field.ErrorList {
	if _, isURL := urlScheme(name); isURL {
		return field.ErrorList{field.Invalid(at, name, "is a URL; name a file of the image repository")}
	}
	return validateFile(name, "the image repository", at)
}

// validateCPUs checks the numbers of CPUs against each other. QEMU refuses a
// topology whose product is not the maximum, so the product is the maximum.
func validateCPUs(m *Machine, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case m.MaximumCPUs == nil && m.CPUTopology == nil:
		errs = append(errs, field.Required(path.Child("maximumCpus"), "give exactly one of maximumCpus and cpuTopology; there is none"))
	case m.MaximumCPUs != nil && m.CPUTopology != nil:
		errs = append(errs, field.Forbidden(path.Child("cpuTopology"), "give exactly one of maximumCpus and cpuTopology; the topology's product is the maximum"))
	}
	if m.MaximumCPUs != nil {
		errs = append(errs, inRange(path.Child("maximumCpus"), int64(*m.MaximumCPUs), 1, maxCPUs)...)
	}
	if t := m.CPUTopology; t != nil {
		at := path.Child("cpuTopology")
		before := len(errs)
		errs = append(errs, inRange(at.Child("sockets"), int64(t.Sockets), 0, maxCPUs)...)
		errs = append(errs, inRange(at.Child("diesPerSocket"), int64(t.DiesPerSocket), 0, maxCPUs)...)
		errs = append(errs, inRange(at.Child("coresPerDie"), int64(t.CoresPerDie), 0, maxCPUs)...)
		errs = append(errs, inRange(at.Child("threadsPerCore"), int64(t.ThreadsPerCore), 0, maxCPUs)...)
		if n := m.MaxCPUs(); len(errs) == before && m.MaximumCPUs == nil && n > maxCPUs {
			errs = append(errs, field.Invalid(at, n, fmt.Sprintf("the product of sockets, dies, cores and threads must be at most %d", maxCPUs)))
		}
	}
	if m.CurrentCPUs == nil {
		return errs
	}
	at := path.Child("currentCpus")
	current := int64(*m.CurrentCPUs)
	switch {
	case current < 1:
		errs = append(errs, field.Invalid(at, current, "must be at least 1"))
	case m.MaximumCPUs != nil && current > int64(*m.MaximumCPUs):
		errs = append(errs, field.Invalid(at, current, fmt.Sprintf("must not be greater than maximumCpus, which is %d", *m.MaximumCPUs)))
	case m.MaximumCPUs == nil && m.CPUTopology != nil && current > m.MaxCPUs():
		errs = append(errs, field.Invalid(at, current, fmt.Sprintf("must not be greater than the product of cpuTopology, which is %d", m.MaxCPUs())))
	}
	return errs
}

func validateRAM(m *Machine, path *field.Path) field.ErrorList {
	errs := validateBytes(*m.MaximumRAM, path.Child("maximumRam"))
	if len(errs) == 0 && m.MaximumRAM.CmpInt64(minRAM) < 0 {
		errs = append(errs, field.Invalid(path.Child("maximumRam"), m.MaximumRAM.String(),
			"must be at least 4Mi; sizes are bytes unless they have a suffix such as Mi or Gi"))
	}
	if m.CurrentRAM == nil {
		return errs
	}
	at := path.Child("currentRam")
	if more := validateBytes(*m.CurrentRAM, at); len(more) > 0 {
		return append(errs, more...)
	}
	if m.CurrentRAM.Cmp(*m.MaximumRAM) > 0 {
		errs = append(errs, field.Invalid(at, m.CurrentRAM.String(),
			"must not be greater than maximumRam, which is "+inUnitsOf(*m.MaximumRAM)))
	}
	return errs
}

// inUnitsOf shows a size as it was written and, because 1G and 1Gi differ by
// 7 percent, also in bytes.
func inUnitsOf(q resource.Quantity) string {
	return fmt.Sprintf("%s (%d bytes)", q.String(), q.Value())
}

func validateClock(m *Machine, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("rtcClock"), m.RTCClock, RTCClockHost, RTCClockRT, RTCClockVM)
	if m.RTCBase == "utc" || m.RTCBase == "localtime" {
		return errs
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, m.RTCBase); err == nil && t.Format(layout) == m.RTCBase {
			return errs
		}
	}
	return append(errs, field.Invalid(path.Child("rtcBase"), m.RTCBase,
		"must be utc, localtime or a time such as 2026-06-17T16:01:21 or 2026-06-17"))
}

func validateDisplay(d *Display, path *field.Path) field.ErrorList {
	errs := inRange(path.Child("outputs"), int64(*d.Outputs), 1, maxOutputs)
	errs = append(errs, validateUser(d.LoggedInUser, path.Child("loggedInUser"))...)
	errs = append(errs, validateVNC(d, path.Child("vnc"))...)
	s := d.Spice
	if s == nil {
		return errs
	}
	at := path.Child("spice")
	errs = append(errs, validatePort(*s.Port, at.Child("port"))...)
	errs = append(errs, inRange(at.Child("usbRedirects"), int64(*s.UsbRedirects), 0, maxUsbRedirects)...)
	if strings.ContainsFunc(s.Server, isBlankOrControl) {
		errs = append(errs, field.Invalid(at.Child("server"), s.Server, "must be a host name or an address"))
	}
	if s.ProxyURL != "" {
		u, err := url.Parse(s.ProxyURL)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsFunc(s.ProxyURL, isBlankOrControl) {
			errs = append(errs, field.Invalid(at.Child("proxyUrl"), s.ProxyURL, "must be a URL such as http://proxy.example.org:3128"))
		}
	}
	if s.StreamingVideo != "" {
		errs = append(errs, oneOf(at.Child("streamingVideo"), s.StreamingVideo, "off", "filter", "all")...)
	}
	return errs
}

// minVNCPort is the port of VNC's display 0, below which QEMU takes none.
const minVNCPort = 5900

func validateVNC(d *Display, path *field.Path) field.ErrorList {
	v := d.VNC
	if v == nil {
		return nil
	}
	var errs field.ErrorList
	if v.UnixSocket {
		const none = "a server on a UNIX socket has none; remove it or unixSocket"
		if v.Port != nil {
			errs = append(errs, field.Forbidden(path.Child("port"), none))
		}
		if v.Websocket != nil {
			errs = append(errs, field.Forbidden(path.Child("websocket"), none))
		}
		return errs
	}
	errs = inRange(path.Child("port"), int64(*v.Port), minVNCPort, 65535)
	taken := map[int32]string{}
	if d.Spice != nil {
		taken[*d.Spice.Port] = "spec.vm.display.spice.port"
	}
	if by := taken[*v.Port]; by != "" {
		errs = append(errs, field.Invalid(path.Child("port"), *v.Port, "is already taken by "+by))
	} else {
		taken[*v.Port] = path.Child("port").String()
	}
	if w := v.Websocket; w != nil {
		errs = append(errs, validatePort(*w, path.Child("websocket"))...)
		if by := taken[*w]; by != "" {
			errs = append(errs, field.Invalid(path.Child("websocket"), *w, "is already taken by "+by))
		}
	}
	return errs
}

// validateUser checks a user name that is sent to the agent in the guest in a
// protocol of words and lines.
func validateUser(name string, path *field.Path) field.ErrorList {
	if strings.ContainsFunc(name, isBlankOrControl) {
		return field.ErrorList{field.Invalid(path, name, "must be a user name, without spaces or control characters")}
	}
	return nil
}

func validatePort(port int32, path *field.Path) field.ErrorList {
	return inRange(path, int64(port), 1, 65535)
}
