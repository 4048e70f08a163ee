package spec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Default fills in exactly what the defaults of the resource definition would
// store for the machine, in its specification and its status, and the one
// default that no definition can express because it depends on another field:
// the port of a VNC server that is not on a UNIX socket. It changes nothing that
// is already set, so applying it twice is applying it once. A nil machine stays one.
func Default(vm *VirtualMachine) {
	if vm == nil {
		return
	}
	DefaultSpec(&vm.Spec)
	defaultStatus(&vm.Status)
}

// DefaultSpec is [Default] for a specification alone.
func DefaultSpec(s *VirtualMachineSpec) {
	if s == nil {
		return
	}
	if s.RunnerTemplate == nil {
		s.RunnerTemplate = &RunnerTemplate{}
	}
	setPointer(&s.RunnerTemplate.Update, true)
	setSlice(&s.Pools)
	for i := range s.Permissions {
		setSlice(&s.Permissions[i].May)
	}
	defaultMachine(&s.VM)
}

func defaultMachine(m *Machine) {
	setString(&m.State, StateStopped)
	setString(&m.Firmware, FirmwareUEFI)
	setPointer(&m.PowerdownTimeout, defaultPowerdownTimeout)
	setString(&m.Accelerator, AcceleratorAuto)
	setString(&m.CPUModel, "host")
	if t := m.CPUTopology; t != nil && t.Sockets == 0 {
		t.Sockets = 1
	}
	if m.MaximumRAM == nil {
		m.MaximumRAM = new(resource.MustParse("1G"))
	}
	setString(&m.RTCBase, "utc")
	setString(&m.RTCClock, RTCClockRT)
	setSlice(&m.Networks)
	for i := range m.Networks {
		defaultNetwork(&m.Networks[i])
	}
	setSlice(&m.Disks)
	for i := range m.Disks {
		if t := m.Disks[i].VolumeClaimTemplate; t != nil {
			defaultClaim(&t.Spec)
		}
		if c := m.Disks[i].ContainerDisk; c != nil {
			setString(&c.PullPolicy, corev1.PullIfNotPresent)
		}
	}
	for i := range m.Shares {
		setString(&m.Shares[i].Protocol, ShareVirtioFS)
	}
	if m.Serial == nil {
		m.Serial = &SerialConsole{}
	}
	setPointer(&m.Serial.Enabled, true)
	if m.Display == nil {
		m.Display = &Display{Spice: &Spice{}}
	}
	defaultDisplay(m.Display)
}

func defaultNetwork(n *Network) {
	if t := n.Tap; t != nil {
		setString(&t.Device, "virtio-net")
		setString(&t.Bridge, "br0")
	}
	if u := n.User; u != nil {
		setString(&u.Device, "virtio-net")
		for i := range u.HostForwards {
			setString(&u.HostForwards[i].Protocol, ForwardTCP)
		}
	}
}

func defaultClaim(c *VolumeClaimSpec) {
	if len(c.AccessModes) == 0 {
		c.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	setPointer(&c.VolumeMode, corev1.PersistentVolumeBlock)
}

func defaultStatus(s *VirtualMachineStatus) {
	if s.RAM == nil {
		s.RAM = resource.NewQuantity(0, resource.DecimalSI)
	}
	if s.Assignment == nil {
		s.Assignment = &Assignment{}
	}
	if s.Conditions == nil {
		s.Conditions = initialConditions()
	}
	for i := range s.Conditions {
		setString(&s.Conditions[i].Status, metav1.ConditionUnknown)
	}
}

// ConditionTypes returns the types of condition that every machine has, in
// their order.
func ConditionTypes() []string {
	return []string{
		ConditionRunning, ConditionBooted, ConditionVmopAgentConnected,
		ConditionUserLoggedIn, ConditionConsoleConnected,
	}
}

// initialConditions are the conditions of a machine before the operator has processed it.
// VM-Operator's users rely on all five being there from the start.
func initialConditions() []Condition {
	types := ConditionTypes()
	out := make([]Condition, 0, len(types))
	for _, t := range types {
		out = append(out, Condition{
			Type:               t,
			Status:             metav1.ConditionFalse,
			ObservedGeneration: 1,
			LastTransitionTime: metav1.NewTime(time.Unix(0, 0).UTC()),
			Reason:             ReasonCreation,
			Message:            "Creation of CR",
		})
	}
	return out
}

// defaultPowerdownTimeout is in seconds.
const defaultPowerdownTimeout = 900

// ShutdownSeconds is how long the guest may take to shut down:
// terminationGracePeriodSeconds, or else vm.powerdownTimeout, with its default.
func (s *VirtualMachineSpec) ShutdownSeconds() int64 {
	switch {
	case s.TerminationGracePeriodSeconds != nil:
		return int64(*s.TerminationGracePeriodSeconds)
	case s.VM.PowerdownTimeout != nil:
		return int64(*s.VM.PowerdownTimeout)
	}
	return defaultPowerdownTimeout
}
