package objects

import (
	"maps"
	"math"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podResources are the manifest's resources, or requests computed from the CPUs
// and the memory that the machine has: a part of them, because a machine rarely
// uses all at once. A manifest that leaves open what the machine has now gives it
// one CPU and all of its memory, which is requested then: a pod without requests
// is the first to be evicted.
func podResources(vm *spec.VirtualMachine, s *Settings) corev1.ResourceRequirements {
	if r := vm.Spec.Resources; r != nil && asks(r) {
		return *r.DeepCopy()
	}
	m := &vm.Spec.VM
	cpus, ram := int64(1), m.MaximumRAM
	if m.CurrentCPUs != nil {
		cpus = int64(*m.CurrentCPUs)
	}
	if m.CurrentRAM != nil {
		ram = m.CurrentRAM
	}
	out := corev1.ResourceRequirements{}
	if r := vm.Spec.Resources; r != nil {
		out = *r.DeepCopy() // such as a device
	}
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	maps.Copy(out.Requests, corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(shareOf(cpus*1000, s.CPUOvercommit, DefaultCPUOvercommit), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(shareOf(spec.Bytes(*ram), s.RAMOvercommit, DefaultRAMOvercommit), resource.BinarySI),
	})
	return out
}

// asks reports whether resources name CPUs or memory at all.
func asks(r *corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if q, given := list[name]; given && !q.IsZero() {
				return true
			}
		}
	}
	return false
}

// shareOf divides an amount, rounding down. A factor that is no positive number
// is the default.
func shareOf(amount int64, overcommit, otherwise float64) int64 {
	if !(overcommit > 0) || math.IsInf(overcommit, 1) {
		overcommit = otherwise
	}
	share := math.Floor(float64(amount) / overcommit)
	if share >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(share)
}
