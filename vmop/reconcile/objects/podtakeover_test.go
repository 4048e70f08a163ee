package objects_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// What gives VM-Operator's files away has one capability, and of the pod nothing
// but the volumes that may have such files; the runner is what it is without it.
func TestTakeOverContainer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "machine")
		vm.Name = rapid.SampledFrom([]string{"web", objects.TakeOverContainer, objects.TapContainer}).Draw(t, "name")
		spec.Default(vm)
		in := objects.PodInput{Disks: machineconfig.Disks(vm)}
		plain := objects.Pod(vm, objects.Settings{TakeOverData: true}, in)
		in.TakeOver = true
		if diff := cmp.Diff(plain, objects.Pod(vm, objects.Settings{}, in)); diff != "" {
			t.Fatalf("without the setting: %s", diff)
		}
		pod := objects.Pod(vm, objects.Settings{TakeOverData: true}, in)
		if len(pod.Spec.InitContainers) != len(plain.Spec.InitContainers)+1 || pod.Annotations[names.AnnotationDataOwner] != "65532" {
			t.Fatalf("%d containers before the runner, %v", len(pod.Spec.InitContainers), pod.Annotations)
		}
		c := pod.Spec.InitContainers[0]
		if diff := cmp.Diff([]corev1.Capability{"CHOWN"}, c.SecurityContext.Capabilities.Add); diff != "" || c.SecurityContext.Privileged != nil || *c.SecurityContext.AllowPrivilegeEscalation || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("it may %+v", c.SecurityContext)
		}
		if len(c.VolumeDevices) > 0 || len(c.Env) > 0 || len(c.Args) != len(c.VolumeMounts)+1 {
			t.Errorf("it has %+v", c)
		}
		for _, m := range c.VolumeMounts {
			if m.ReadOnly || m.Name != "runner-data" && !slices.ContainsFunc(in.Disks, func(d machineconfig.Disk) bool { return d.Name == m.Name }) {
				t.Errorf("it sees %+v", m)
			}
		}
		names := map[string]bool{}
		for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			if names[c.Name] {
				t.Errorf("two containers %s", c.Name)
			}
			names[c.Name] = true
		}
		if diff := cmp.Diff(plain.Spec.Containers, pod.Spec.Containers); diff != "" {
			t.Errorf("the runner changes: %s", diff)
		}
	})
}

func TestTakeOverArguments(t *testing.T) {
	file := corev1.PersistentVolumeFilesystem
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	vm.Spec.VM.Disks = []spec.Disk{{VolumeClaimTemplate: &spec.VolumeClaimTemplate{}}, {VolumeClaimTemplate: &spec.VolumeClaimTemplate{Spec: spec.VolumeClaimSpec{VolumeMode: &file}}}}
	spec.Default(vm)
	pod := objects.Pod(vm, objects.Settings{TakeOverData: true}, objects.PodInput{Disks: machineconfig.Disks(vm), TakeOver: true})
	want := []string{"-take-over-data", "65532", "/var/local/vmop-disks/disk-1/disk.img"}
	if diff := cmp.Diff(want, pod.Spec.InitContainers[0].Args); diff != "" {
		t.Error(diff)
	}
}
