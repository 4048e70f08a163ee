package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// operations are those of a test's namespace.
type operations struct {
	*test
	all dynamic.ResourceInterface
}

func (t *test) operations() *operations {
	t.Helper()
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &operations{t, all.Resource(spec.GroupVersion().WithResource(spec.ResourceOperations)).Namespace(t.namespace)}
}

// operate creates an operation.
func (o *operations) operate(name, machine string, kind spec.OperationType, force bool) {
	o.Helper()
	manifest := fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineOperation\nmetadata: {name: %s}\nspec: {type: %s, virtualMachineName: %s, force: %t}\n", name, kind, machine, force)
	if _, err := o.all.Create(o.Context(), o.object(manifest), metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
}

func (o *operations) get(name string) (*spec.VirtualMachineOperation, error) {
	u, err := o.all.Get(o.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := &spec.VirtualMachineOperation{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

// ends waits until an operation has ended, and compares.
func (o *operations) ends(name string, phase spec.OperationPhase, reason string) *spec.VirtualMachineOperation {
	o.Helper()
	return o.endsFor(name, phase, reason)
}

// endsFor is ends with one of several reasons.
func (o *operations) endsFor(name string, phase spec.OperationPhase, reasons ...string) *spec.VirtualMachineOperation {
	o.Helper()
	var got *spec.VirtualMachineOperation
	o.eventually(name+" ends", func() (err error) {
		if got, err = o.get(name); err != nil {
			return err
		}
		if !got.Status.Phase.Finished() || len(got.Finalizers) > 0 {
			return fmt.Errorf("%s, %v: %+v", got.Status.Phase, got.Finalizers, got.Status.Conditions)
		}
		return nil
	})
	c := spec.FindCondition(got.Status.Conditions, conditions.Completed)
	if got.Status.Phase != phase || c == nil || !slices.Contains(reasons, c.Reason) || c.Message == "" || got.Status.CompletionTime == nil {
		o.Errorf("%s: %s, %+v, want %s, %s", name, got.Status.Phase, c, phase, reasons)
	}
	return got
}

func (o *operations) pod(name string) types.UID {
	o.Helper()
	pod, err := o.kube.CoreV1().Pods(o.namespace).Get(o.Context(), name, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return pod.UID
}

// Machines with and without a run policy are started, restarted and stopped by
// operations; what is not possible is refused and changes nothing; what is asked for
// cannot be changed; what is done is kept for a while, however many operations a
// machine of the same name has in another namespace.
func TestOperations(tt *testing.T) {
	tt.Parallel()
	t, elsewhere := newTest(tt), newTest(tt)
	o, others := t.operations(), elsewhere.operations()
	t.startKubelet()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {operationsKept: 3}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := t.start(cluster.Kubeconfig(), "--config="+config, "--namespace="+elsewhere.namespace)

	// As many as are kept, and older than all others.
	elsewhere.create(machine("manual", "Stopped"))
	for i := range 3 {
		name := fmt.Sprint("migrate-", i)
		others.operate(name, "manual", spec.OperationMigrate, false)
		others.ends(name, spec.OperationFailed, conditions.ReasonTypeNotSupported)
	}

	t.create(machine("plain", "Stopped"))
	t.create(strings.Replace(machine("manual", "Stopped"), "guestShutdownStops: true", "runPolicy: Manual", 1))
	for _, name := range []string{"plain", "manual"} {
		t.phase(name, spec.PhaseStopped)
		o.operate(name+"-start", name, spec.OperationStart, false)
		o.ends(name+"-start", spec.OperationCompleted, conditions.ReasonOperationCompleted)
		t.phase(name, spec.PhaseRunning)
		before := o.pod(name)
		o.operate(name+"-again", name, spec.OperationStart, false)
		o.ends(name+"-again", spec.OperationFailed, conditions.ReasonNotApplicableForPhase)
		o.operate(name+"-restart", name, spec.OperationRestart, false)
		done := o.ends(name+"-restart", spec.OperationCompleted, conditions.ReasonOperationCompleted)
		if after := o.pod(name); after == before || done.Status.PodUID != before {
			t.Errorf("%s: pod %s before, %s after, noted %s", name, before, after, done.Status.PodUID)
		}
		o.operate(name+"-stop", name, spec.OperationStop, true)
		o.ends(name+"-stop", spec.OperationCompleted, conditions.ReasonOperationCompleted)
		t.phase(name, spec.PhaseStopped)
	}

	// Refused: the operator has no such operation, there is no such machine.
	o.operate("migrate", "manual", spec.OperationMigrate, false)
	o.ends("migrate", spec.OperationFailed, conditions.ReasonTypeNotSupported)
	o.operate("nobody", "nobody", spec.OperationStop, false)
	o.ends("nobody", spec.OperationFailed, conditions.ReasonVirtualMachineNotFound)

	// Of the operations of a machine the newest are kept; those of others are no
	// matter.
	t.eventually("operations are cleaned up", func() error {
		list, err := o.all.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		got := map[string]int{}
		for i := range list.Items {
			machine, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "virtualMachineName")
			got[machine]++
		}
		if want := map[string]int{"plain": 3, "manual": 3, "nobody": 1}; !maps.Equal(got, want) {
			return fmt.Errorf("there are %v, want %v", got, want)
		}
		return nil
	})
	if list, err := others.all.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 3 {
		t.Errorf("of the other namespace's 3 operations there are %d, %v", len(list.Items), err)
	}

	// The definition lets nothing of it be changed, and no start be forced.
	_, err := o.all.Patch(t.Context(), "nobody", types.MergePatchType, []byte(`{"spec":{"type":"Start"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create another one") {
		t.Errorf("%v", err)
	}
	_, err = o.all.Create(t.Context(), t.object("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineOperation\nmetadata: {name: x}\nspec: {type: Start, virtualMachineName: manual, force: true}\n"), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be forced") {
		t.Errorf("%v", err)
	}
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.log)
	}
}

// reacts reports whether the guest of a machine reacts to its power button.
func (k *kubelet) reacts(name string, reacts bool) {
	k.mu.Lock()
	k.stubborn[name] = !reacts
	k.mu.Unlock()
	k.queue.Add(item{true, name})
}

// An operator that dies while a machine stops is followed by one that finds out what
// became of it, and does not tell the machine again.
func TestOperationsOutliveTheOperator(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	o := t.operations()
	k := t.startKubelet()
	first := t.start(cluster.Kubeconfig())
	t.create(strings.Replace(machine("web", "Stopped"), "guestShutdownStops: true", "runPolicy: AlwaysOnUnlessStoppedManually", 1))
	t.phase("web", spec.PhaseRunning)
	k.reacts("web", false)
	o.operate("stop", "web", spec.OperationStop, false)
	t.eventually("the machine is told", func() error {
		got, err := o.get("stop")
		if err == nil && !spec.ConditionIsTrue(got.Status.Conditions, conditions.SignalSent) {
			err = fmt.Errorf("%+v", got.Status)
		}
		return err
	})
	// Another one is refused, for what the machine is doing or for the operation.
	o.operate("again", "web", spec.OperationRestart, false)
	o.endsFor("again", spec.OperationFailed, conditions.ReasonNotReadyToBeExecuted, conditions.ReasonNotApplicableForPhase)
	first.kill()
	vm, err := t.status("web")
	if err != nil {
		t.Fatal(err)
	}
	request := vm.Annotations[names.AnnotationPowerRequest]
	t.start(cluster.Kubeconfig())
	k.reacts("web", true)
	done := o.ends("stop", spec.OperationCompleted, conditions.ReasonOperationCompleted)
	t.phase("web", spec.PhaseStopped)
	if vm, err = t.status("web"); err != nil || vm.Annotations[names.AnnotationPowerRequest] != request || done.Status.Request != request {
		t.Errorf("%v: %q, %q, %q", err, request, vm.Annotations, done.Status.Request)
	}
}
