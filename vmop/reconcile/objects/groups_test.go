package objects_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// Pods are in the groups of the node's devices if they have any of them, each once.
func TestDeviceGroups(t *testing.T) {
	groups := []int64{993, 6}
	for name, c := range map[string]struct {
		s    objects.Settings
		edit func(*spec.Machine)
		want []int64
	}{
		"no device":      {s: objects.Settings{DeviceGroups: groups}},
		"KVM by plugin":  {s: objects.Settings{DeviceGroups: groups, KVMResource: "devices.kubevirt.io/kvm"}, want: groups},
		"privileged":     {s: objects.Settings{DeviceGroups: groups, Privileged: true}, want: groups},
		"no KVM wanted":  {s: objects.Settings{DeviceGroups: groups, Privileged: true}, edit: func(m *spec.Machine) { m.Accelerator = spec.AcceleratorTCG }},
		"a block device": {s: objects.Settings{DeviceGroups: groups}, edit: disk, want: []int64{6, 993}},
		"no setting":     {edit: disk, want: []int64{6}},
	} {
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		if c.edit != nil {
			c.edit(&vm.Spec.VM)
		}
		spec.Default(vm)
		pod := objects.Pod(vm, c.s, objects.PodInput{Disks: machineconfig.Disks(vm)})
		if got := pod.Spec.SecurityContext.SupplementalGroups; !slices.Equal(got, c.want) {
			t.Errorf("%s: groups %v, want %v", name, got, c.want)
		}
	}
}

func disk(m *spec.Machine) {
	mode := corev1.PersistentVolumeBlock
	m.Disks = []spec.Disk{{VolumeClaimTemplate: &spec.VolumeClaimTemplate{Spec: spec.VolumeClaimSpec{VolumeMode: &mode}}}}
}
