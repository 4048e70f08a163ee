package machinetest

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newNamesWorld is a world in which the pods of the machine may have any names, as those
// that an operator of another version makes, and in which there may be several.
func newNamesWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.named, w.seconds = true, map[types.UID]bool{}
	return w
}

// isRunners reports whether an object is the pod of a machine.
func isRunners(o reconcile.Object) bool {
	_, is := o.(*corev1.Pod)
	return is && o.GetLabels()[names.LabelComponent] == names.ComponentRunner
}

// rename gives a pod that is made another name.
func (w *world) rename(o reconcile.Object) {
	if w.named && isRunners(o) && w.choose("name", 3) > 0 {
		o.SetName(fmt.Sprintf("%s-%d", o.GetName(), w.serial))
	}
}

// machinesPod is the pod in which the machine runs or is to, in truth: of several the one
// with the guest.
func (w *world) machinesPod() *corev1.Pod {
	var found *corev1.Pod
	for _, k := range w.keys("pod/") {
		pod := get[*corev1.Pod](w, k)
		if pod != nil && (k == thePod || pod.Labels[names.LabelInstance] == "web") && (found == nil || w.guests[pod.UID] != nil) {
			found = pod
		}
	}
	return found
}

// observePods lets the operator see all pods as they are, and reports whether it had not.
func (w *world) observePods() (news bool) {
	for _, k := range w.keys("pod/") {
		if h := w.objects[k]; h.seen < len(h.versions)-1 && (k == thePod || w.named) {
			h.seen, news = len(h.versions)-1, true
		}
	}
	return news
}

// makeSecondPod is somebody who makes a second pod of the machine like the one that there is.
// It waits for the guest in that one, as with claims that one pod only may have.
func (w *world) makeSecondPod() {
	pod, vm := w.machinesPod(), get[*spec.VirtualMachine](w, theVM)
	if pod == nil || vm == nil || vm.DeletionTimestamp != nil || w.guests[pod.UID] == nil || pod.DeletionTimestamp != nil ||
		len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].UID != vm.UID || len(w.seconds) > 0 {
		return
	}
	from := pod.UID
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: fmt.Sprintf("web-copy-%d", w.serial), Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations,
		OwnerReferences: pod.OwnerReferences, CreationTimestamp: metav1.NewTime(w.now), UID: w.uid(),
	}
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	w.seconds[pod.UID] = true
	w.made[pod.UID], w.madeAt[pod.UID] = w.made[from], w.madeAt[from]
	w.put("pod/"+pod.Name, pod)
	w.note("somebody makes pod %s beside pod %s", pod.UID, from)
}

// restorePods is somebody who restores what the status says of pods from a backup.
func (w *world) restorePods() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	all := w.objects[theVM].versions
	former, is := all[w.choose("backup", len(all))].object.(*spec.VirtualMachine)
	if !is || former.UID != vm.UID {
		return
	}
	vm.Status.VirtualMachinePods = slices.Clone(former.Status.VirtualMachinePods)
	w.put(theVM, vm)
	w.note("the status has pods %v again", vm.Status.VirtualMachinePods)
}

// toldPods is a mutant's plan with what the status says of pods changed.
func toldPods(change func(*machine.Snapshot, []any) []any) func(*machine.Snapshot, *reconcile.Plan) {
	return func(s *machine.Snapshot, p *reconcile.Plan) {
		for _, st := range p.Statuses {
			if all, _ := st.Status["virtualMachinePods"].([]any); len(all) > 0 {
				st.Status["virtualMachinePods"] = change(s, all)
			}
		}
	}
}

func nameMutants() []mutant {
	const promise = "at most one guest of a machine executes"
	return []mutant{
		{
			fault: "the machine's pod is known by its name", promise: promise, or: "what is wanted is reached; the world comes to rest; only the runner with the guest reports",
			before: func(s *machine.Snapshot) {
				s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return isRunners(&p) && p.Name != s.VM.Name })
			},
		},
		{
			fault: "only the active pod is looked at", promise: "the status has the pods of the machine", or: "a disk has one machine; at most one guest of a machine executes",
			before: noOthers,
		},
		{
			fault: "all pods of a machine are told to be active", promise: "one pod of a machine is active", or: "the status has the pods of the machine",
			after: toldPods(func(_ *machine.Snapshot, all []any) []any {
				for _, p := range all {
					p.(map[string]any)["active"] = true
				}
				return all
			}),
		},
		{
			fault: "the pods are told when the guest executes", promise: "the runner of the active pod may report",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, st := range p.Statuses {
					if st.Manager == names.OperatorStatusManager && st.Status["phase"] != spec.PhaseRunning {
						delete(st.Status, "virtualMachinePods")
					}
				}
			},
		},
		{
			fault: "the pod that is made last is told to be the active one", promise: "only the runner with the guest reports", or: "the runner of the active pod may report",
			after: toldPods(func(s *machine.Snapshot, all []any) []any {
				last, made := 0, metav1.Time{}
				for i, p := range all {
					p := p.(map[string]any)
					p["active"] = false
					at := slices.IndexFunc(s.Pods, func(pod corev1.Pod) bool { return string(pod.UID) == p["uid"] })
					if made.Before(&s.Pods[at].CreationTimestamp) {
						last, made = i, s.Pods[at].CreationTimestamp
					}
				}
				all[last].(map[string]any)["active"] = true
				return all
			}),
		},
		{
			fault: "all pods of a machine go with the last one", promise: "only pods that have ended go with the last one", or: "a pod is deleted by its UID",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				last := s.Pod()
				if last == nil || !slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool {
					d, is := a.(reconcile.DeletePod)
					return is && d.UID == last.UID
				}) {
					return
				}
				for i := range s.Pods {
					if pod := &s.Pods[i]; pod.UID != last.UID {
						p.Actions = append(p.Actions, reconcile.DeletePod{Name: pod.Name, UID: pod.UID})
					}
				}
			},
		},
		{
			fault: "a pod that has not started is deleted for the guest beside it", promise: "a pod is deleted by its UID",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for i := range s.Pods {
					if pod := &s.Pods[i]; isRunners(pod) && pod.UID != s.Pod().UID {
						p.Actions = append(p.Actions, reconcile.DeletePod{Name: pod.Name, UID: pod.UID})
					}
				}
			},
		},
	}
}
