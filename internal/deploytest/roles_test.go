package deploytest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/frontends/runner/kubernetes"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
	"github.com/vmop/sdk/vmop/spec"
)

// podsOf makes further pods like the machine's, and returns the tokens of all, each with
// what the status calls its pod.
func podsOf(t *testing.T, machine string, further ...string) (of []spec.VirtualMachinePod, as []*rest.Config) {
	t.Helper()
	for _, name := range append([]string{machine}, further...) {
		var pod corev1.Pod
		read(t, pods, "default", machine, &pod)
		if name != machine {
			pod.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences}
			pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			pod.UID = store(t, pods, &pod).GetUID()
		}
		of, as = append(of, spec.VirtualMachinePod{Name: name, UID: pod.UID}), append(as, stolen(t, name))
	}
	return of, as
}

// setPods has a machine's status say which pods it has, as the operator does.
func setPods(t *testing.T, machine string, listed []spec.VirtualMachinePod) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"virtualMachinePods": listed})
	if err != nil {
		t.Fatal(err)
	}
	if err := patchStatus(t, cluster.Config(), machine, string(text), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// report is what a runner does from its pod: it asks for its machine, and reports.
func report(t *testing.T, as *rest.Config, machine string) error {
	t.Helper()
	runner, err := kubernetes.NewClient(as, "default", machine)
	if err != nil {
		t.Fatal(err)
	}
	m, err := runner.Machine(t.Context())
	if err != nil {
		return err
	}
	return runner.ApplyStatus(t.Context(), m, &vmstatus.Status{CPUs: 1, RAM: "1Gi", Conditions: []vmstatus.Condition{}})
}

// A runner reports about its machine in the active pod, whatever that is called; in the
// target of a move and in a leftover it does not; and it does in the one pod of a machine
// that does not move, before the operator has noted it and with a status from before an
// upgrade.
func TestRunnersReportByTheRolesOfTheirPods(t *testing.T) {
	storeMachine(t, "moves")
	storeMachine(t, "moves-9")
	defer removeMachine(t, "moves")
	defer removeMachine(t, "moves-9")
	defer kubectl(t, "delete", "pod", "-n", "default", "moves-7", "--ignore-not-found", "--wait=true")
	of, as := podsOf(t, "moves", "moves-7")
	_, others := podsOf(t, "moves-9")
	awaitPolicies(t, as[0], "moves")

	named, moved, former := of[0], of[1], spec.VirtualMachinePod{Name: "moves", UID: "of-the-run-before"}
	list := func(active spec.VirtualMachinePod, others ...spec.VirtualMachinePod) []spec.VirtualMachinePod {
		active.Active = true
		return append(others, active)
	}
	for _, test := range []struct {
		name   string
		listed []spec.VirtualMachinePod
		// named and moved are whether the runners in the pods may report.
		named, moved bool
	}{
		{"a status from before", nil, true, false},
		{"no pods yet", []spec.VirtualMachinePod{}, true, false},
		{"the only pod", list(named), true, false},
		{"the next pod of the name, which is not noted yet", list(former), true, false},
		{"the next pod after one that has ended", []spec.VirtualMachinePod{former}, true, false},
		{"the source of a move, and its target", list(named, moved), true, false},
		{"a leftover, and the pod that was the target", list(moved, named), false, true},
		{"the other way round", list(moved, former), false, true},
		{"both have ended", []spec.VirtualMachinePod{named, moved}, false, false},
		{"only the target is noted", list(moved), false, true},
	} {
		setPods(t, "moves", test.listed)
		for i, may := range []bool{test.named, test.moved} {
			err := report(t, as[i], "moves")
			if may && err != nil {
				t.Errorf("%s: pod %s: %v", test.name, of[i].Name, err)
			}
			if !may && (err == nil || !strings.Contains(err.Error(), "the pod "+of[i].Name+" reports about the machine whose status")) {
				t.Errorf("%s: pod %s: %v, want the policy's refusal", test.name, of[i].Name, err)
			}
			if may != objects.MayReport(&spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "moves"}, Status: spec.VirtualMachineStatus{VirtualMachinePods: test.listed}}, of[i].Name, of[i].UID) {
				t.Errorf("%s: pod %s: MayReport says otherwise", test.name, of[i].Name)
			}
		}
		if err := report(t, others[0], "moves"); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: the pod of another machine: %v", test.name, err)
		}
	}
	// A runner that may report cannot make itself the one that may.
	setPods(t, "moves", list(named, moved))
	for i := range as {
		text := fmt.Sprintf(`{"virtualMachinePods":[{"name":%q,"uid":%q,"active":true}]}`, of[i].Name, of[i].UID)
		if err := patchStatus(t, as[i], "moves", text, metav1.PatchOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("pod %s says that it is active: %v", of[i].Name, err)
		}
	}
}

// The policy and objects.MayReport are one rule in two languages.
func TestThePolicyIsMayReport(t *testing.T) {
	storeMachine(t, "ruled")
	defer removeMachine(t, "ruled")
	defer kubectl(t, "delete", "pod", "-n", "default", "ruled-1", "ruled-2", "--ignore-not-found", "--wait=true")
	of, as := podsOf(t, "ruled", "ruled-1", "ruled-2")
	awaitPolicies(t, as[0], "ruled")

	may := 0
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		all := append([]spec.VirtualMachinePod{{Name: "ruled", UID: "former"}, {Name: "ruled-1", UID: "former-1"}, {Name: "gone", UID: "u"}}, of...)
		random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		listed := all[:random.IntN(5)]
		for i := range listed { // the operator has one active at most; the rules agree about more
			listed[i].Active = random.IntN(len(listed)) == 0
		}
		setPods(t, "ruled", listed)
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "ruled"}, Status: spec.VirtualMachineStatus{VirtualMachinePods: listed}}
		for i, pod := range of {
			want := objects.MayReport(vm, pod.Name, pod.UID)
			err := patchStatus(t, as[i], "ruled", fmt.Sprintf(`{"cpus":%d}`, n+1), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); refused == want || !refused && err != nil {
				t.Errorf("by %+v pod %s may report: %v, and the policy: %v", listed, pod.Name, want, err)
			}
			if want {
				may++
			}
		}
	}
	if may == 0 {
		t.Error("nobody may report")
	}
}
