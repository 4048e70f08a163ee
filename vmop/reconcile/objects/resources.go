package objects

import (
	"encoding/json"
	"maps"
	"math"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are what a guest may use: a number of CPUs, and memory in bytes.
type Amounts struct {
	CPUs int64 `json:"cpus"`
	RAM  int64 `json:"ram"`
}

// GuestAmounts returns what a manifest, with its defaults applied, gives to its guest now: by
// default one CPU and all of the memory.
func GuestAmounts(vm *spec.VirtualMachine) Amounts {
	m := &vm.Spec.VM
	a := Amounts{CPUs: 1, RAM: spec.Bytes(*m.MaximumRAM)}
	if m.CurrentCPUs != nil {
		a.CPUs = int64(*m.CurrentCPUs)
	}
	if m.CurrentRAM != nil {
		a.RAM = spec.Bytes(*m.CurrentRAM)
	}
	return a
}

// Requests is how the requests of a machine's pod follow from what its guest may use. A pod
// records it in [names.AnnotationRequests]: neither another version nor other settings of the
// operator change what a running pod has to request.
type Requests struct {
	// CPUOvercommit and RAMOvercommit divide what the guest may use, as in [Settings]: a machine
	// rarely uses all at once.
	CPUOvercommit float64 `json:"cpuOvercommit"`
	RAMOvercommit float64 `json:"ramOvercommit"`
	// Overhead is [qemucmd.MemoryOverhead] in bytes. It is not divided.
	Overhead int64 `json:"overhead"`
	// Maximum is what the machine was made with; a guest never has more.
	Maximum Amounts `json:"maximum"`
	// Limited is true if the pod has limits, because a quota of its namespace requires some.
	Limited bool `json:"limited,omitempty"`
	// CoreFraction is the part of each CPU that the pod requests, in percent; with 0
	// CPUOvercommit applies. The pod has a limit of CPUs then, too.
	CoreFraction int64 `json:"coreFraction,omitempty"`
}

// NewRequests returns those of a new pod.
func NewRequests(vm *spec.VirtualMachine, s *Settings, in *PodInput) Requests {
	fraction, err := spec.ParseCoreFraction(vm.Spec.CoreFraction)
	if err != nil {
		fraction = 0 // an invalid machine is not run
	}
	return Requests{
		CoreFraction:  int64(fraction),
		CPUOvercommit: factor(s.CPUOvercommit, defaultCPUOvercommit), RAMOvercommit: factor(s.RAMOvercommit, defaultRAMOvercommit),
		Overhead: overhead(vm, s, in),
		Maximum:  Amounts{CPUs: int64(vm.Spec.VM.MaxCPUs()), RAM: spec.Bytes(*vm.Spec.VM.MaximumRAM)},
		Limited:  in.Limited,
	}
}

// For returns what the pod requests so that its guest may use some amounts.
func (r Requests) For(a Amounts) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(share(min(a.CPUs, r.Maximum.CPUs), r.perCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(plus(share(min(a.RAM, r.Maximum.RAM), 1/r.RAMOvercommit), r.Overhead), resource.BinarySI),
	}
}

func (r Requests) perCPU() float64 {
	if r.CoreFraction > 0 {
		return float64(r.CoreFraction) * 10
	}
	return 1000 / r.CPUOvercommit
}

// Limits returns the limits of the pod, if it has any: for a machine with a part of its
// processors, all of these; in a namespace whose quota requires limits, what the machine can ever
// use. A guest whose QEMU exceeds its memory limit is killed, so QEMU's own part counts twice;
// and QEMU's own threads have a CPU. They are above the requests, so that the pod is not
// Guaranteed by accident, which would prevent resizing it.
func (r Requests) Limits() corev1.ResourceList {
	requests, out := r.For(r.Maximum), corev1.ResourceList{}
	if r.Limited {
		out[corev1.ResourceCPU] = *resource.NewMilliQuantity(plus(max(share(r.Maximum.CPUs, 1000), requests.Cpu().MilliValue()), 1000), resource.DecimalSI)
		out[corev1.ResourceMemory] = *resource.NewQuantity(plus(max(plus(r.Maximum.RAM, r.Overhead), requests.Memory().Value()), r.Overhead), resource.BinarySI)
	}
	if r.CoreFraction > 0 {
		out[corev1.ResourceCPU] = *resource.NewMilliQuantity(share(r.Maximum.CPUs, 1000), resource.DecimalSI)
	}
	return out
}

// Covered returns the greatest amounts whose requests are within a list, the memory in whole MiB.
func (r Requests) Covered(list corev1.ResourceList) Amounts {
	const unit = 1 << 20
	cpus := share(list.Cpu().MilliValue(), r.CPUOvercommit/1000)
	if r.CoreFraction > 0 {
		cpus = list.Cpu().MilliValue() / (10 * r.CoreFraction)
	}
	return Amounts{
		CPUs: max(min(cpus, r.Maximum.CPUs), 1),
		RAM:  max(min(share(list.Memory().Value()-r.Overhead, r.RAMOvercommit), r.Maximum.RAM)/unit*unit, unit),
	}
}

// overhead returns the host memory that the machine needs beside its guest's RAM, in bytes, whole
// MiB. Neither KVM of the future node nor the format of disks is known: a pod that gets a device
// is assumed to have KVM, and disks to be raw images.
func overhead(vm *spec.VirtualMachine, s *Settings, in *PodInput) int64 {
	plain := *vm
	if plain.Spec.CloudInit != nil {
		plain.Spec.CloudInit = &spec.CloudInit{} // the content takes no memory
	}
	config, err := machineconfig.ForDefaulted(&plain, in.Disks, machineconfig.Options{VolumeModes: in.VolumeModes})
	if err != nil {
		return 0 // an invalid machine is not run
	}
	runnerconfig.Default(&config)
	o, err := runnerconfig.MemoryOverhead(&config, qemucmd.Host{KVM: s.KVMResource != "" || s.Privileged})
	if err != nil {
		return 0
	}
	const unit = 1 << 20
	return plus(o.Total(), unit-1) / unit * unit
}

// setResources sets the manifest's resources, or those computed from its guest's CPUs and memory
// and QEMU's overhead: a pod without requests is the first to be evicted. There are no limits
// unless the manifest or a quota requires some.
func setResources(vm *spec.VirtualMachine, pod *corev1.Pod, s *Settings, in *PodInput) {
	c := &pod.Spec.Containers[0]
	if r := vm.Spec.Resources; r != nil {
		c.Resources = *r.DeepCopy() // even if it has only a device
		if vm.Spec.NamesCompute() {
			return
		}
	}
	requests := NewRequests(vm, s, in)
	if c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	maps.Copy(c.Resources.Requests, requests.For(GuestAmounts(vm)))
	if limits := requests.Limits(); len(limits) > 0 {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		maps.Copy(c.Resources.Limits, limits)
	}
	// Finite numbers always encode.
	data, _ := json.Marshal(requests)
	pod.Annotations[names.AnnotationRequests] = string(data)
}

func factor(overcommit, otherwise float64) float64 {
	if !(overcommit > 0) || math.IsInf(overcommit, 1) {
		return otherwise
	}
	return overcommit
}

// share multiplies an amount, rounding down and saturating.
func share(amount int64, by float64) int64 {
	switch s := math.Floor(float64(max(amount, 0)) * by); {
	case s >= math.MaxInt64:
		return math.MaxInt64
	case s > 0:
		return int64(s)
	}
	return 0
}

// plus adds two non-negative amounts, saturating.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
