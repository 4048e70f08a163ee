package spec

import (
	"fmt"
	"math"

	"github.com/vmop/sdk/vmop/limits"
)

// +kubebuilder:object:generate=false

// Amendment is a field of a stored machine that is taken for something else.
type Amendment struct {
	// Field is the path of the field, such as spec.vm.maximumCpus.
	Field string
	// Message is what is stored, what it is taken for and why.
	Message string
}

// String is the amendment in one line.
func (a Amendment) String() string { return a.Field + ": " + a.Message }

// Amend changes a specification that the API server has stored though the
// definition refuses it, as VM-Operator's does not, to the one that VM-Operator's
// machines have with it; it returns what it has changed. It leaves alone what
// VM-Operator starts no machine with either, for [ValidateStored] to report.
//
// A specification that [Validate] finds nothing wrong with is not changed, nor is
// one that was amended before.
func Amend(s *VirtualMachineSpec) []Amendment {
	if s == nil {
		return nil
	}
	a := amender{}
	a.image(s.Image)
	vm := &s.VM
	a.cpus(vm)
	a.ram(vm)
	if t := vm.PowerdownTimeout; t != nil {
		a.clamp(t, 0, limits.MaxPowerdownTimeout, "spec.vm.powerdownTimeout")
	}
	for i := range vm.Disks {
		if b := vm.Disks[i].Bootindex; b != nil && *b < 0 {
			a.say(fmt.Sprintf("spec.vm.disks[%d].bootindex", i), "is %d and taken for none, as QEMU does", *b)
			vm.Disks[i].Bootindex = nil
		}
	}
	if vm.Display != nil && vm.Display.Spice != nil {
		a.spice(vm.Display.Spice)
	}
	return a.done
}

type amender struct{ done []Amendment }

func (a *amender) say(path, format string, args ...any) {
	a.done = append(a.done, Amendment{Field: path, Message: fmt.Sprintf(format, args...)})
}

func (a *amender) clamp(n *int32, least, most int32, path string) {
	if was := *n; was < least || was > most {
		*n = min(max(was, least), most)
		a.say(path, "is %d and taken for %d; it must be from %d to %d", was, *n, least, most)
	}
}

// image: the source wins over a part of the other form.
func (a *amender) image(image *RunnerImage) {
	if image == nil || image.Source == "" || (image.Repository == "") == (image.Path == "") {
		return
	}
	a.say("spec.image", "has source as well as repository or path, of which source counts")
	image.Repository, image.Path = "", ""
}

// cpus: VM-Operator's runner raises the maximum to the present number, takes
// numbers below one for one, and leaves those out of a topology. A topology whose
// product is not the maximum is refused by QEMU.
func (a *amender) cpus(vm *Machine) {
	if n := vm.CurrentCPUs; n != nil {
		a.clamp(n, 1, math.MaxInt32, "spec.vm.currentCpus")
	}
	if n := vm.MaximumCPUs; n != nil {
		a.clamp(n, 1, math.MaxInt32, "spec.vm.maximumCpus")
		if c := vm.CurrentCPUs; c != nil && *c > *n && *c <= limits.MaxCPUs {
			a.say("spec.vm.maximumCpus", "is %d and taken for %d, because currentCpus is", *n, *c)
			*n = *c
		}
	}
	if t := vm.CPUTopology; t != nil {
		a.clamp(&t.Sockets, 0, math.MaxInt32, "spec.vm.cpuTopology.sockets")
		a.clamp(&t.DiesPerSocket, 0, math.MaxInt32, "spec.vm.cpuTopology.diesPerSocket")
		a.clamp(&t.CoresPerDie, 0, math.MaxInt32, "spec.vm.cpuTopology.coresPerDie")
		a.clamp(&t.ThreadsPerCore, 0, math.MaxInt32, "spec.vm.cpuTopology.threadsPerCore")
	}
}

// ram: QEMU's balloon leaves the guest no more than there is.
func (a *amender) ram(vm *Machine) {
	if vm.CurrentRAM == nil || vm.MaximumRAM == nil || CompareQuantities(*vm.CurrentRAM, *vm.MaximumRAM) <= 0 {
		return
	}
	a.say("spec.vm.currentRam", "is %s and taken for maximumRam, which is %s", vm.CurrentRAM, inUnitsOf(*vm.MaximumRAM))
	vm.CurrentRAM = new(vm.MaximumRAM.DeepCopy())
}

// spice: VM-Operator's runner does not read the way of streaming. USB ports are
// as many as the controller has.
func (a *amender) spice(s *Spice) {
	if n := s.UsbRedirects; n != nil {
		a.clamp(n, 0, limits.MaxUSBRedirects, "spec.vm.display.spice.usbRedirects")
	}
	if v := s.StreamingVideo; v != "" && limits.StreamingVideo(v) != nil {
		a.say("spec.vm.display.spice.streamingVideo", "is %q and taken for none, as VM-Operator did; it %v", v, limits.StreamingVideo(v))
		s.StreamingVideo = ""
	}
}
