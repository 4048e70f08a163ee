package reconcile

import (
	"math"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podResources are the manifest's resources, or requests computed from the CPUs
// and the memory that the machine has now: a part of them, because a machine
// rarely uses all at once. What the manifest leaves open is not requested.
func podResources(vm *spec.VirtualMachine, s *Settings) corev1.ResourceRequirements {
	if r := vm.Spec.Resources; r != nil {
		return *r.DeepCopy()
	}
	m := &vm.Spec.VM
	requests := corev1.ResourceList{}
	if m.CurrentCPUs != nil {
		milli := shareOf(int64(*m.CurrentCPUs)*1000, s.CPUOvercommit, DefaultCPUOvercommit)
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	if m.CurrentRAM != nil {
		bytes := shareOf(spec.Bytes(*m.CurrentRAM), s.RAMOvercommit, DefaultRAMOvercommit)
		requests[corev1.ResourceMemory] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
	if len(requests) == 0 {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: requests}
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
