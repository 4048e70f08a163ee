package machinetest

import (
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) runnerReports(g *guest) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil || g.stage == 3 || g.pod.OwnerReferences == nil || g.pod.OwnerReferences[0].UID != vm.UID {
		return
	}
	if !objects.MayReport(vm, g.pod.Name, g.pod.UID) {
		w.note("the runner of pod %s may not report", g.pod.UID)
		return // it retries
	}
	g.stage++
	g.told = false
	if g.stage < 3 && w.choose("report lost", 3) == 0 {
		return
	}
	status, reason := "False", spec.ReasonRunnerStarted
	if g.stage > 1 {
		status, reason = "True", spec.ReasonVMStarted
	}
	var conditions []any
	for _, t := range spec.ConditionTypes() {
		st := "False"
		if t == spec.ConditionRunning {
			st = status
		}
		at := w.now
		if c := spec.FindCondition(vm.Status.Conditions, t); c != nil && string(c.Status) == st {
			at = c.LastTransitionTime.Time
		}
		conditions = append(conditions, map[string]any{"type": t, "status": st, "reason": reason, "message": "", "lastTransitionTime": at.UTC().Format(time.RFC3339)})
	}
	if g.stage > 1 {
		at := w.now
		if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionGuestExecuting); c != nil && c.Status == metav1.ConditionTrue {
			at = c.LastTransitionTime.Time
		}
		conditions = append(conditions, map[string]any{"type": spec.ConditionGuestExecuting, "status": "True", "reason": spec.ReasonRunning, "message": "", "lastTransitionTime": at.UTC().Format(time.RFC3339)})
	}
	part := map[string]any{"cpus": 1, "ram": "1G", "runnerVersion": "1", "conditions": conditions}
	if w.nodes != nil {
		w.reportAmounts(part, g)
	}
	if g.content != w.content {
		part["changedDocuments"] = []any{map[string]any{"name": spec.DocumentUserData}}
	}
	w.applyStatus(vm, names.RunnerStatusManager, part)
	w.put(theVM, vm)
	g.told = true
	w.note("the runner of pod %s reports stage %d", g.pod.UID, g.stage)
}

func (w *world) report(g *guest) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil || g.stage < 2 || !g.told || g.pod.OwnerReferences == nil || g.pod.OwnerReferences[0].UID != vm.UID {
		return
	}
	g.stage = 2 // the next report repeats what is known, too
	w.runnerReports(g)
}

func (w *world) reportAmounts(part map[string]any, g *guest) {
	part["cpus"], part["ram"] = g.has.CPUs, resource.NewQuantity(g.has.RAM, resource.BinarySI).String()
	status, reason := "True", "AsConfigured"
	if g.pending.CPUs > 0 {
		status, reason = "False", "PodNotResized"
	}
	if g.generation > 0 {
		part["conditions"] = append(part["conditions"].([]any), map[string]any{
			"type": spec.ConditionCPUsAdjusted, "status": status, "reason": reason, "message": "",
			"lastTransitionTime": w.now.UTC().Format(time.RFC3339), "observedGeneration": g.generation,
		})
	}
}
