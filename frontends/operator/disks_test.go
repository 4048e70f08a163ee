package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// sharing is a machine whose disk is a claim that others may refer to, too.
func sharing(name, claim string) string {
	own := "volumeClaimTemplate:\n        metadata: {name: system}\n        spec: {resources: {requests: {storage: 1Gi}}}"
	return strings.Replace(machine(name, "Stopped"), own, "persistentVolumeClaim: {claimName: "+claim+"}", 1)
}

func (t *test) createClaim(name string) {
	t.Helper()
	_, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *quantity("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// neverShared fails the test if two pods that have not ended use a claim at the
// same time. It returns a function that ends the observation and says how many
// pods it has seen.
func (t *test) neverShared(claim string) (seen func() int) {
	t.Helper()
	pods := t.kube.CoreV1().Pods(t.namespace)
	now, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	using, all := map[string]bool{}, map[string]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok || !uses(pod, claim) {
				continue
			}
			uid := string(pod.UID)
			all[uid] = true
			if e.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				delete(using, uid)
			} else {
				using[uid] = true
			}
			if len(using) > 1 {
				t.Errorf("%d pods use claim %s, one is %s", len(using), claim, pod.Name)
			}
		}
	})
	return func() int { w.Stop(); done.Wait(); return len(all) }
}

func uses(pod *corev1.Pod, claim string) bool {
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName == claim {
			return true
		}
	}
	return false
}

// inUse waits until a machine says that another pod uses its disk.
func (t *test) inUse(name, pod string) error {
	vm, err := t.status(name)
	if err != nil {
		return err
	}
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
	if c == nil || c.Reason != spec.ReasonDisksInUse || !strings.Contains(c.Message, "pod "+pod+" uses") {
		return fmt.Errorf("conditions %+v", vm.Status.Conditions)
	}
	return nil
}

// Of two machines with one disk one runs, whoever was first; the other waits
// and follows by itself.
func TestMachinesThatShareADiskRunOneAfterTheOther(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.createClaim("shared")
	t.create(sharing("a", "shared"))
	t.create(sharing("b", "shared"))
	t.takeTurns("shared", 10)
}

// A claim that has the name that VM-Operator once gave to it is the machine's
// disk like any other.
func TestClaimOfAFormerNameIsShared(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	const former = "system-disk-a-0"
	t.apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ` + former + `
  labels: {app.kubernetes.io/name: vm-runner, app.kubernetes.io/instance: a, app.kubernetes.io/managed-by: vm-operator}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
`)
	t.create(machine("a", "Stopped"))
	t.create(sharing("b", former))
	t.takeTurns(former, 3)
}

// takeTurns starts an operator and then the machines a and b at the same time,
// which have a claim in common.
func (t *test) takeTurns(claim string, rounds int) {
	t.Helper()
	t.start(cluster.Kubeconfig())
	t.phase("a", spec.PhaseStopped)
	t.phase("b", spec.PhaseStopped)
	seen := t.neverShared(claim)
	for range rounds {
		var both sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			both.Go(func() { t.setState(name, spec.StateRunning) })
		}
		both.Wait()
		first, second := "", ""
		t.eventually("one runs, the other says why not", func() error {
			for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
				vm, err := t.status(pair[0])
				if err != nil {
					return err
				}
				if vm.Status.Phase == spec.PhaseRunning {
					first, second = pair[0], pair[1]
					return t.inUse(second, first)
				}
			}
			return fmt.Errorf("none runs")
		})
		t.setState(first, spec.StateStopped)
		t.phase(second, spec.PhaseRunning)
		t.setState(second, spec.StateStopped)
		t.phase(first, spec.PhaseStopped)
		t.phase(second, spec.PhaseStopped)
	}
	if n := seen(); n != 2*rounds {
		t.Errorf("%d pods, want %d", n, 2*rounds)
	}
}

// A pod that is nobody's runner, such as one that makes a backup, keeps a
// machine from being started until it has gone.
func TestPodOfOthersUsesADisk(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.createClaim("shared")
	pods := t.kube.CoreV1().Pods(t.namespace)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "backup"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "backup", Image: "backup"}},
			Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.create(sharing("a", "shared"))
	t.start(cluster.Kubeconfig())
	t.phase("a", spec.PhaseStopped)
	t.setState("a", spec.StateRunning)
	t.eventually("the pod is named", func() error { return t.inUse("a", "backup") })
	if uid := t.podUID("a"); uid != "" {
		t.Errorf("the machine has pod %s", uid)
	}
	if err := pods.Delete(t.Context(), "backup", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("a", spec.PhaseRunning)
}

// A pod that was there before the machine's disk was, such as one that is to fill
// it, has the disk first, though the operator itself has only just made the claim.
func TestPodWaitsForADiskThatIsMade(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(machine("first", "Running")) // the namespace is known
	t.phase("first", spec.PhaseRunning)
	pods := t.kube.CoreV1().Pods(t.namespace)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "loader"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "loader", Image: "loader"}},
			Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "second-system-disk"},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.create(machine("second", "Running"))
	t.eventually("the pod is named", func() error { return t.inUse("second", "loader") })
	if uid := t.podUID("second"); uid != "" {
		t.Errorf("the machine has pod %s", uid)
	}
	if err := pods.Delete(t.Context(), "loader", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("second", spec.PhaseRunning)
}
