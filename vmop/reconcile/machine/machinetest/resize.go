package machinetest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func capacityOf(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(n<<30, resource.BinarySI)}
}

func fits(some, in corev1.ResourceList) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q := some[name]; q.Cmp(in[name]) > 0 {
			return false
		}
	}
	return true
}

func (w *world) behind() bool {
	if w.nodes == nil {
		return false
	}
	for key, n := range w.nodes.written {
		if h := w.objects[key]; h != nil && h.seen < n {
			return true
		}
	}
	return false
}

func (w *world) wrote(a reconcile.Action) {
	if w.nodes == nil {
		return
	}
	for _, key := range []string{thePod, theConfig} {
		kind, _, _ := strings.Cut(a.Target().Kind, "/")
		if h := w.objects[key]; h != nil && strings.HasPrefix(key, strings.ToLower(kind)) {
			w.nodes.written[key] = len(h.versions) - 1
		}
	}
}

func (w *world) resize(a reconcile.ResizePod) result {
	pod := get[*corev1.Pod](w, "pod/"+a.Name)
	if pod == nil || pod.UID != a.UID || pod.ResourceVersion != a.ResourceVersion {
		return stale
	}
	if w.nodes == nil {
		w.violated("a node that does not resize pods is not asked to", "%+v", a)
	}
	asked := maps.Clone(pod.Spec.Containers[0].Resources.Requests)
	maps.Copy(asked, a.Requests)
	if w.nodes.refuses && !fits(asked, w.nodes.most) {
		return refused
	}
	pod.Spec.Containers[0].Resources.Requests = asked
	pod.Generation++
	w.put("pod/"+a.Name, pod)
	return done
}

// infeasible reports whether the API server refuses to resize the pod for its guest, which is tried
// again for as long as it is wanted.
func (w *world) infeasible() bool {
	vm, pod := get[*spec.VirtualMachine](w, theVM), get[*corev1.Pod](w, thePod)
	if w.nodes == nil || !w.nodes.refuses || vm == nil || pod == nil {
		return false
	}
	r, _ := objects.RecordedRequests(pod)
	return !fits(r.For(objects.GuestAmounts(vm)), w.nodes.most)
}

// allocate models the kubelet: it gives the pod all that it requests, or nothing.
func (w *world) allocate(pod *corev1.Pod) {
	if w.nodes == nil || len(pod.Spec.Containers) == 0 || pod.Name != "web" {
		return
	}
	asked := pod.Spec.Containers[0].Resources.Requests
	pod.Status.Conditions = nil
	if had, running := w.nodes.allocated[pod.UID]; running && !fits(asked, w.nodes.room) && !fits(asked, had) {
		c := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, Message: "Node didn't have enough resource: memory"}
		if !fits(asked, w.nodes.most) {
			c.Reason = corev1.PodReasonInfeasible
		}
		pod.Status.Conditions = []corev1.PodCondition{c}
	} else {
		w.nodes.allocated[pod.UID] = asked.DeepCopy()
	}
	if !w.nodes.silent {
		pod.Generation = max(pod.Generation, 1)
		pod.Status.ObservedGeneration = pod.Generation
	}
	pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: w.nodes.allocated[pod.UID].DeepCopy()}
}

func (w *world) adjust(pod *corev1.Pod, g *guest, how int) bool {
	switch how {
	case 0:
		w.kubeletResizes(pod)
		return false
	case 4:
		w.changeRoom()
	case 5:
		w.kubeletResizes(pod)
	case 6:
		w.read(g)
	case 7:
		w.report(g)
	default:
		return false
	}
	return true
}

func (w *world) changeRoom() {
	n := int64(1 + w.choose("room", 12))
	w.nodes.room = capacityOf(n)
	if w.choose("most", 3) == 0 {
		w.nodes.most = capacityOf(n)
	}
	w.note("there is room for %d", n)
}

func (w *world) kubeletResizes(pod *corev1.Pod) {
	before := fmt.Sprint(pod.Status)
	w.allocate(pod)
	if fmt.Sprint(pod.Status) != before {
		w.put("pod/"+pod.Name, pod)
		w.note("the kubelet has given pod %s %v: %v", pod.UID, w.nodes.allocated[pod.UID], pod.Status.Conditions)
	}
}

func (w *world) read(g *guest) {
	cm := get[*corev1.ConfigMap](w, theConfig)
	if cm == nil {
		return
	}
	c, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey]))
	if err != nil || c.Runner.VM.Name == "" {
		return
	}
	g.generation, g.pending = c.Runner.Generation, objects.Amounts{CPUs: int64(c.Runner.VM.PendingCPUs), RAM: int64(c.Runner.VM.PendingRAM)}
	g.has = objects.Amounts{CPUs: max(int64(c.Runner.VM.CurrentCPUs), 1), RAM: int64(c.Runner.VM.CurrentRAM)}
	if g.has.RAM == 0 {
		g.has.RAM = int64(c.Runner.VM.MaximumRAM)
	}
}

func (w *world) follow(pod *corev1.Pod, g *guest) {
	if fresh := get[*corev1.Pod](w, "pod/"+pod.Name); fresh != nil && fresh.DeletionTimestamp == nil && fresh.Status.Phase == corev1.PodRunning {
		w.kubeletResizes(fresh)
	}
	before := *g
	w.read(g)
	if before.generation != g.generation || before.has != g.has || before.pending != g.pending {
		w.report(g)
	}
}

// checkRoom verifies that no guest may use more than its node has given its pod.
func (w *world) checkRoom() {
	if w.nodes == nil {
		return
	}
	w.checkPending()
	for uid, g := range w.guests {
		pod := get[*corev1.Pod](w, thePod)
		if pod == nil || pod.UID != uid || g.generation == 0 {
			continue
		}
		if r, recorded := objects.RecordedRequests(pod); recorded && !fits(r.For(g.has), w.nodes.allocated[uid]) {
			w.violated("a guest uses what its pod has", "%+v needs %v and has %v", g.has, r.For(g.has), w.nodes.allocated[uid])
		}
	}
}

// checkPending verifies that a runner that follows a manifest does not take for all of it what its
// pod has been resized for.
func (w *world) checkPending() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	want := objects.GuestAmounts(vm)
	for _, g := range w.guests {
		if g.generation == vm.Generation && (max(g.has.CPUs, g.pending.CPUs) < want.CPUs || max(g.has.RAM, g.pending.RAM) < want.RAM) {
			w.violated("what waits for a pod is not shown as reached", "%+v and %+v pending, of %+v", g.has, g.pending, want)
		}
	}
}

func (w *world) short(vm *spec.VirtualMachine) bool {
	pod := get[*corev1.Pod](w, thePod)
	if w.nodes == nil || pod == nil {
		return false
	}
	r, _ := objects.RecordedRequests(pod)
	return !fits(r.For(objects.GuestAmounts(vm)), w.nodes.allocated[pod.UID])
}

func (w *world) checkResized() {
	vm, pod := get[*spec.VirtualMachine](w, theVM), get[*corev1.Pod](w, thePod)
	if vm.Spec.VM.State != spec.StateRunning || pod == nil {
		return
	}
	r, recorded := objects.RecordedRequests(pod)
	if !recorded {
		w.violated("a pod says how its requests came about", "%v", pod.Annotations)
	}
	g, want := w.guests[pod.UID], objects.GuestAmounts(vm)
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
	if w.short(vm) {
		if c.Reason != spec.ReasonResizeDeferred && c.Reason != spec.ReasonResizeInfeasible {
			w.violated("a guest that cannot grow says so", "%+v", c)
		}
		return
	}
	if g.has != want || c.Status != "True" && c.Reason != spec.ReasonShrinkRefused {
		w.violated("a guest has what it is to have", "%+v instead of %+v: %+v", g.has, want, c)
	}
	if w.infeasible() {
		return // the node is smaller than its pod
	}
	if need := r.For(want); !fits(need, pod.Spec.Containers[0].Resources.Requests) || !fits(pod.Spec.Containers[0].Resources.Requests, need) {
		w.violated("a pod asks for what its guest has", "%v instead of %v", pod.Spec.Containers[0].Resources.Requests, need)
	}
}
