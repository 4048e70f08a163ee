package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim of the name that VM-Operator gave, which comes back when the machine runs
// with one that was made since, is not put in its place.
func TestFormerClaimThatComesBack(t *testing.T) {
	s := converged(t, "hello")
	i := slices.IndexFunc(s.Claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == "web-system-disk" })
	former := s.Claims[i].DeepCopy()
	former.Name, former.UID = "system-disk-web-0", "restored"
	s.Claims = append(s.Claims, *former)
	s.VM = s.VM.DeepCopy()
	s.VM.Status.Claims = nil // a moment after it has started
	for _, st := range machine.Decide(s).Statuses {
		claims, _ := st.Status["claims"].([]any)
		if slices.ContainsFunc(claims, func(c any) bool { return c.(map[string]any)["claimName"] == "web-system-disk" }) {
			return
		}
	}
	t.Error("the claim that the machine runs with is not noted")
}

// A claim that somebody deletes before the machine ever ran is made once more; what is
// told of a wait that lasts by then has a next step, too.
func TestTheSecondMakingOfAClaimIsTold(t *testing.T) {
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Finalizers, vm.Status.Phase = []string{names.FinalizerMachine}, spec.PhasePending
	vm.Status.Waits = []spec.Wait{{
		Condition: spec.ConditionBlockDevicesReady, Reason: spec.ReasonBlockDevicesNotReady,
		Object: "PersistentVolumeClaim web-runner-data", Since: metav1.NewTime(w.now.Add(-time.Minute)),
	}}
	w.put(theVM, vm)
	w.observeAll()
	events := w.decided(nil).Events
	if len(events) != 1 || !strings.Contains(events[0].Note, "claim web-runner-data of the runner's data is being made; see kubectl describe pvc web-runner-data") {
		t.Errorf("%v", events)
	}
}
