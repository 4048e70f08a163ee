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

// GuestAmounts are those that a manifest, which must have its defaults, gives to
// its guest now. One that leaves it open gives one CPU and all of the memory.
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

// Requests is how the requests of a machine's pod follow from what its guest may
// use. A pod records it in [names.AnnotationRequests]: neither another version nor
// another setting of the operator changes what a pod that runs has to ask for.
type Requests struct {
	// CPUOvercommit and RAMOvercommit divide what the guest may use, as in
	// [Settings]: a machine rarely uses all at once.
	CPUOvercommit float64 `json:"cpuOvercommit"`
	RAMOvercommit float64 `json:"ramOvercommit"`
	// Overhead is [qemucmd.MemoryOverhead] in bytes. Nothing divides it.
	Overhead int64 `json:"overhead"`
	// Maximum is what the machine was made with; a guest never has more.
	Maximum Amounts `json:"maximum"`
	// Limited is true if the pod has limits, because a quota of its namespace requires some.
	Limited bool `json:"limited,omitempty"`
	// CoreFraction is the part of each CPU that the pod requests, in percent; with 0 CPUOvercommit
	// decides. The pod has a limit of CPUs then, too.
	CoreFraction int64 `json:"coreFraction,omitempty"`
}

// NewRequests are those of a pod that is made now.
func NewRequests(vm *spec.VirtualMachine, s *Settings, in *PodInput) Requests {
	fraction, err := spec.ParseCoreFraction(vm.Spec.CoreFraction)
	if err != nil {
		fraction = 0 // of what cannot be run
	}
	return Requests{
		CoreFraction:  int64(fraction),
		CPUOvercommit: factor(s.CPUOvercommit, defaultCPUOvercommit), RAMOvercommit: factor(s.RAMOvercommit, defaultRAMOvercommit),
		Overhead: overhead(vm, s, in),
		Maximum:  Amounts{CPUs: int64(vm.Spec.VM.MaxCPUs()), RAM: spec.Bytes(*vm.Spec.VM.MaximumRAM)},
		Limited:  in.Limited,
	}
}

// For is what the pod asks for so that its guest may use some amounts.
func (r Requests) For(a Amounts) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(share(min(a.CPUs, r.Maximum.CPUs), r.perCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(plus(share(min(a.RAM, r.Maximum.RAM), 1/r.RAMOvercommit), r.Overhead), resource.BinarySI),
	}
}

// perCPU is how much of a processor is requested for each of the guest's, in
// thousandths.
func (r Requests) perCPU() float64 {
	if r.CoreFraction > 0 {
		return float64(r.CoreFraction) * 10
	}
	return 1000 / r.CPUOvercommit
}

// Limits are those of the pod, if it has any: of a machine with a part of its
// processors, all of these and no more; and in a namespace that wants some what the
// machine can ever use. A guest whose QEMU meets a limit of memory is killed, so QEMU's own
// part counts twice; and QEMU's own threads have a CPU. They are more than the
// requests are, so that the pod is not Guaranteed by accident, which would forbid
// to resize it.
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

// Covered are the greatest amounts for which no more is asked for than is in a
// list, the memory in whole MiB.
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

// overhead is what the machine needs of the host's memory beside its guest's RAM,
// in bytes, whole MiB. Whether its node has KVM is not known before it is there: a pod that
// gets a device for it is taken to. Disks are taken for raw images; what is in a
// volume is not known either.
func overhead(vm *spec.VirtualMachine, s *Settings, in *PodInput) int64 {
	plain := *vm
	if plain.Spec.CloudInit != nil {
		plain.Spec.CloudInit = &spec.CloudInit{} // the content takes no memory
	}
	config, err := machineconfig.ForDefaulted(&plain, in.Disks, machineconfig.Options{VolumeModes: in.VolumeModes})
	if err != nil {
		return 0 // of what cannot be run
	}
	runnerconfig.Default(&config)
	o, err := runnerconfig.MemoryOverhead(&config, qemucmd.Host{KVM: s.KVMResource != "" || s.Privileged})
	if err != nil {
		return 0
	}
	const unit = 1 << 20
	return plus(o.Total(), unit-1) / unit * unit
}

// setResources gives the pod the manifest's resources, or what follows from the
// CPUs and the memory of its guest and from what QEMU needs beside it: a pod
// without requests is the first to be evicted. There are no limits unless the
// manifest or a quota wants some.
func setResources(vm *spec.VirtualMachine, pod *corev1.Pod, s *Settings, in *PodInput) {
	c := &pod.Spec.Containers[0]
	if r := vm.Spec.Resources; r != nil {
		c.Resources = *r.DeepCopy() // also if it is only a device
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
	// Numbers that are finite are always encoded.
	data, _ := json.Marshal(requests)
	pod.Annotations[names.AnnotationRequests] = string(data)
}

// factor is a factor of overcommitment, which is the default if it is no positive
// number.
func factor(overcommit, otherwise float64) float64 {
	if !(overcommit > 0) || math.IsInf(overcommit, 1) {
		return otherwise
	}
	return overcommit
}

// share multiplies an amount, rounding down, without leaving the numbers that
// there are.
func share(amount int64, by float64) int64 {
	switch s := math.Floor(float64(max(amount, 0)) * by); {
	case s >= math.MaxInt64:
		return math.MaxInt64
	case s > 0:
		return int64(s)
	}
	return 0
}

// plus adds two amounts, neither of them negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
