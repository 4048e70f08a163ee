package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A machine with new disks takes a request for each object, for the finalizer, if no policy
// adds that, and for the status, and no list; and it gives way to a pod of others that was
// there first and waits for one of its disks.
func TestMachineWithNewDisks(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	p := newProxy(tt)
	t.start(p.kubeconfig)
	// The first of a namespace has a look at all pods.
	t.create(machine("first", "Running"))
	t.phase("first", spec.PhaseRunning)
	next := 0
	needs := func(more ...string) {
		tt.Helper()
		t.eventually("a machine needs its objects, its status and "+strings.Join(more, ", ")+", and no list", func() error {
			time.Sleep(time.Second)
			next++
			name := fmt.Sprint("next-", next)
			p.reset()
			t.create(machine(name, "Running"))
			t.phase(name, spec.PhaseRunning)
			status := "patch vms/" + name + "/status"
			all := p.which(func(*request) bool { return true })
			made := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == status })
			slices.Sort(made)
			want := []string{"create configmaps", "create persistentvolumeclaims", "create persistentvolumeclaims", "create pods", "create secrets"}
			for _, verb := range more {
				want = append(want, verb+" vms/"+name)
			}
			// There are two if the pod took more than two seconds to run.
			if n := len(all) - len(made); !slices.Equal(made, want) || n < 1 || n > 2 {
				return fmt.Errorf("%d statuses and %q, want %q", n, made, want)
			}
			return nil
		})
	}
	// The watch of what waits counts only after some seconds, in which machines need lists.
	needs("patch") // for the finalizer
	t.addsFinalizers()
	needs()

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "populate"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "populate", Image: "populate"}},
		Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: spec.DiskClaimName("third", "system-disk")},
		}}},
	}}
	pods := t.kube.CoreV1().Pods(t.namespace)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.create(machine("third", "Running"))
	t.waits("third", spec.ConditionPodReady, spec.ReasonDisksInUse)
	vm, err := t.status("third")
	if err != nil {
		t.Fatal(err)
	}
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady); !strings.Contains(c.Message, "pod populate uses") {
		t.Errorf("condition %+v", c)
	}
	if _, err := pods.Get(t.Context(), "third", metav1.GetOptions{}); err == nil {
		t.Error("it has a pod")
	}
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	t.phase("third", spec.PhaseRunning)
}

// addsFinalizers has the API server add the finalizer to what is created in the namespace.
func (t *test) addsFinalizers() {
	t.Helper()
	const policy = "../../deploy/finalizer-policy.yaml"
	if _, err := cluster.Kubectl(t.Context(), "apply", "--warnings-as-errors", "-f", policy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "-f", policy); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.Kubectl(t.Context(), "create", "rolebinding", names.OperatorBinding, "-n", t.namespace,
		"--clusterrole=vmop-operator-machines", "--serviceaccount=vmop-system:vmop-operator"); err != nil {
		t.Fatal(err)
	}
}
