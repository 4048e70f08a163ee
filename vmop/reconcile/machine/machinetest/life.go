package machinetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) step() {
	w.operations++
	events := []func(){
		func() { w.reconcile(true) },
		func() { w.reconcile(true) },
		func() { w.reconcile(true) },
		func() { w.reconcile(false) },
		w.observeSome, w.observeSome, w.observeSome, w.observeAll,
		func() { // the machine changes most often
			h := w.objects[theVM]
			h.seen = len(h.versions) - 1
		},
		w.kubelet, w.kubelet, w.kubelet, w.controllers,
		func() {
			w.pass([]time.Duration{time.Second, 5 * time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 4)])
		},
		w.person, w.node, w.askForReset, w.work,
		func() { // a new operator knows only what it reads
			w.observeAll()
			clear(w.failures)
		},
	}
	if w.named {
		events = append(events, w.makeSecondPod, w.restorePods)
	}
	events[w.choose("event", len(events))]()
	w.check()
}

// work lets some time pass without faults.
func (w *world) work() {
	for range 1 + w.choose("rounds", 6) {
		w.observeAll()
		w.reconcile(false)
		w.controllers()
		for _, k := range w.keys("pod/") {
			if pod := get[*corev1.Pod](w, k); pod != nil && !w.dead[pod.Spec.NodeName] {
				w.tend(pod, goodWay)
			}
		}
		w.check()
	}
}

func (w *world) kubelet() {
	keys := w.keys("pod/")
	if len(keys) == 0 {
		return
	}
	key := keys[w.choose("pod", len(keys))]
	for range 1 + w.choose("kubelet steps", 4) {
		if pod := get[*corev1.Pod](w, key); pod != nil && !w.dead[pod.Spec.NodeName] {
			w.tend(pod, way(w.choose("kubelet", 8)))
		}
	}
}

// way is how the kubelet and the guest of a pod go on; the effect depends on the pod's state.
type way int

const (
	goodWay way = iota
	// firstBad: no node has room, the image cannot be pulled, or the guest shuts down.
	firstBad
	// secondBad: the node evicts the pod, or QEMU fails.
	secondBad
	guestResets
)

func (w *world) tend(pod *corev1.Pod, how way) {
	key, g := "pod/"+pod.Name, w.guests[pod.UID]
	switch {
	case pod.Spec.NodeName == "":
		if how == firstBad {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
			break
		}
		if missing := w.missing(pod); len(missing) > 0 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: fmt.Sprintf("0/2 nodes are available: persistentvolumeclaim %q not found", missing[0])}}
			break
		}
		for _, n := range []string{"n1", "n2"} {
			if !w.dead[n] {
				pod.Spec.NodeName = n
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
				break
			}
		}
		if pod.Spec.NodeName == "" {
			return
		}
	case pod.DeletionTimestamp != nil:
		if g != nil && how == firstBad {
			w.finish(pod, runnerconfig.CauseRequested)
			return
		}
		delete(w.guests, pod.UID)
		w.put(key, nil)
		w.note("pod %s is gone", pod.UID)
		return
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return
	case g == nil && w.seconds[pod.UID] && len(w.guests) > 0:
		return
	case g == nil:
		pod.Status.Phase = corev1.PodPending
		if how == firstBad {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
			break
		}
		if how == secondBad {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
			w.endsByPolicy(pod, "Evicted")
			w.ended(pod, true)
			break
		}
		w.start(pod)
		return
	default:
		switch how {
		case firstBad:
			w.finish(pod, runnerconfig.CauseGuestShutdown)
		case secondBad:
			w.finish(pod, runnerconfig.CauseQEMUFailure)
		case guestResets:
			w.finish(pod, runnerconfig.CauseGuestReset)
		default:
			if w.nodes != nil && w.adjust(pod, g, int(how)) {
				return
			}
			w.runnerReports(g)
		}
		return
	}
	w.put(key, pod)
}

func (w *world) start(pod *corev1.Pod) {
	g := &guest{pod: pod, content: w.content}
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName != names.ImageRepositoryClaim {
			if get[*corev1.PersistentVolumeClaim](w, "claim/"+c.ClaimName) == nil {
				return // the kubelet waits
			}
			g.claims = append(g.claims, c.ClaimName)
		}
	}
	told := w.checkGiven(pod)
	w.guests[pod.UID] = g
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}}}
	w.allocate(pod)
	w.put("pod/"+pod.Name, pod)
	w.note("pod %s runs on %s", pod.UID, pod.Spec.NodeName)
	if !told {
		w.finish(pod, runnerconfig.CauseStartFailure) // the runner reports what is missing
	}
}

func (w *world) finish(pod *corev1.Pod, cause runnerconfig.Cause) {
	delete(w.guests, pod.UID)
	pod.Status.Phase = corev1.PodSucceeded
	if cause.Failure() {
		pod.Status.Phase = corev1.PodFailed
	}
	w.endsByPolicy(pod, cause)
	started := pod.Status.ContainerStatuses[0].State.Running
	t := &corev1.ContainerStateTerminated{Message: outcome(cause), FinishedAt: metav1.NewTime(w.now)}
	if started != nil {
		t.StartedAt = started.StartedAt
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Name, State: corev1.ContainerState{Terminated: t}}}
	w.put("pod/"+pod.Name, pod)
	w.ended(pod, cause.Failure())
	w.note("pod %s ends: %s", pod.UID, cause)
	w.losesEnd(pod)
}

// ended records how the pod of the machine ended. The end of a deleted pod is no failure.
func (w *world) ended(pod *corev1.Pod, failed bool) {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm != nil && pod.DeletionTimestamp == nil && len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID {
		// The operator learns of a start that was asked for before as if it had been since.
		w.lastEnds[pod.UID] = end{w.now, failed && !startOutstanding(vm), vm.Generation}
	}
}

// controllers models the controller manager: it binds volumes and deletes objects without an
// owner.
func (w *world) controllers() {
	for _, k := range w.keys("claim/") {
		if w.unbound {
			break
		}
		pvc := get[*corev1.PersistentVolumeClaim](w, k)
		if pvc != nil && pvc.DeletionTimestamp != nil && !w.inUse(pvc.Name) {
			w.put(k, nil)
			w.note("claim %s is gone", pvc.Name)
		} else if pvc != nil && pvc.Status.Phase != corev1.ClaimBound {
			pvc.Status.Phase = corev1.ClaimBound
			w.put(k, pvc)
		}
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	for _, k := range slices.Concat(w.keys("pod/"), w.keys("configmap/"), w.keys("service/")) {
		o := get[reconcile.Object](w, k)
		if o == nil || len(o.GetOwnerReferences()) == 0 {
			continue
		}
		if vm != nil && o.GetOwnerReferences()[0].UID == vm.UID {
			continue
		}
		if pod, ok := o.(*corev1.Pod); ok {
			w.deletePod(pod, 30)
		} else {
			w.put(k, nil)
		}
	}
	w.collectUserData()
}

// What a user does.
const (
	startsOrStops        = "starts the machine, or stops it"
	setsCPUs             = "sets maximumCpus"
	togglesShutdownStops = "changes guestShutdownStops"
	setsModel            = "sets the CPU model, to a bad one perhaps"
	sizesDisk            = "sets the size of a disk"
	deletesPod           = "deletes a pod"
	editsConfiguration   = "edits the ConfigMap"
	togglesLoadBalancer  = "changes whether there are load balancers"
	deletesMachine       = "deletes the machine, perhaps"
	intrudes             = "makes another pod with its disk"
	emptiesService       = "takes the ports from the service"
	forcesStop           = "forces a stop"
	setsTimeout          = "sets powerdownTimeout"
	asksForPower         = "asks for a start, a stop or a restart"
	setsPolicy           = "sets the run policy"
	approvesRestarts     = "says whether restarts need approval"
	changesContent       = "changes the content of a Secret"
	togglesSecret        = "deletes the Secret with the user data, or makes it again"
)

// deeds are drawn from; repeated ones are likelier. Those from asksForPower on are for worlds
// with run policies.
var deeds = []string{
	startsOrStops, startsOrStops, setsCPUs, togglesShutdownStops, setsModel, sizesDisk, deletesPod, editsConfiguration, togglesLoadBalancer,
	deletesMachine, intrudes, emptiesService, forcesStop, setsTimeout,
	asksForPower, asksForPower, asksForPower, asksForPower, setsPolicy, setsPolicy, approvesRestarts, approvesRestarts, changesContent, togglesSecret,
}

func (w *world) person() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		w.note("a person creates the machine again")
		w.createVM()
		w.decisions++
		return
	}
	n := len(deeds)
	if !w.policies {
		n = slices.Index(deeds, asksForPower)
	}
	what := deeds[w.choose("person", n)]
	w.note("a person %s", what)
	if w.edit(vm, what) {
		vm.Generation++
		w.put(theVM, vm)
		return
	}
	switch what {
	case asksForPower:
		w.ask(vm)
	case changesContent:
		w.newContent(vm)
	case togglesSecret:
		w.toggleSecret(vm)
	case deletesPod:
		w.deleteAnyPod(vm)
	case editsConfiguration:
		w.drift()
	case togglesLoadBalancer:
		w.settings.LoadBalancer = map[bool]*objects.LoadBalancer{true: {}}[w.settings.LoadBalancer == nil]
	case deletesMachine:
		w.deleteMachine(vm)
	case intrudes:
		w.intruder()
	case forcesStop:
		w.forceStop(vm)
	case emptiesService:
		w.emptyService()
	}
}

func (w *world) edit(vm *spec.VirtualMachine, what string) bool {
	switch what {
	case startsOrStops:
		w.decisions++
		if vm.Spec.VM.State == spec.StateRunning {
			vm.Spec.VM.State = spec.StateStopped
		} else {
			vm.Spec.VM.State = spec.StateRunning
		}
	case setsPolicy:
		vm.Spec.RunPolicy = append(runPolicies, "")[w.choose("policy", len(runPolicies)+1)]
		w.decisions++
		w.upsets++
	case approvesRestarts:
		if vm.Spec.Disruptions = nil; w.choose("approves", 2) == 1 {
			vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		}
	case setsCPUs:
		vm.Spec.VM.MaximumCPUs = new(int32(1 + w.choose("cpus", 8)))
	case togglesShutdownStops:
		vm.Spec.GuestShutdownStops = !vm.Spec.GuestShutdownStops
	case setsModel:
		if vm.Spec.VM.CPUModel = "host"; w.choose("valid", 2) == 0 {
			vm.Spec.VM.CPUModel = "host,pmu=off\n"
		}
	case sizesDisk:
		if t := vm.Spec.VM.Disks[0].VolumeClaimTemplate; w.choose("grow", 3) > 0 {
			t.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("2Gi")
		} else {
			t.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("1Gi")
		}
	case setsTimeout:
		vm.Spec.VM.PowerdownTimeout = new(int32(10 * w.choose("timeout", 5)))
	default:
		return false
	}
	return true
}

func (w *world) toggleSecret(vm *spec.VirtualMachine) {
	const key = "provisioning/web-init"
	if get[*corev1.Secret](w, key) != nil {
		w.put(key, nil)
		w.note("the Secret is deleted")
	} else {
		w.provide(vm)
	}
}

func (w *world) deleteAnyPod(vm *spec.VirtualMachine) {
	keys := append(w.keys("pod/"), thePod)
	if pod := get[*corev1.Pod](w, keys[w.choose("pod", len(keys))]); pod != nil {
		delete(w.lastEnds, pod.UID)
		w.removesByPolicy(vm, pod)
		w.deletePod(pod, 30)
	}
}

func (w *world) deleteMachine(vm *spec.VirtualMachine) {
	if w.choose("really", 2) > 0 {
		return
	}
	if len(vm.Finalizers) == 0 || w.choose("removes finalizers by hand", 2) == 1 {
		w.deleteVM()
		if w.choose("creates it again at once", 2) == 1 {
			w.createVM()
			w.decisions++
		}
		return
	}
	if vm.DeletionTimestamp != nil {
		return
	}
	at := metav1.NewTime(w.now)
	vm.DeletionTimestamp = &at
	vm.Generation++
	w.put(theVM, vm)
}

func (w *world) forceStop(vm *spec.VirtualMachine) {
	w.serial++
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[names.AnnotationForceStop] = fmt.Sprint("force ", w.serial)
	w.put(theVM, vm)
}

func (w *world) emptyService() {
	if svc := get[*corev1.Service](w, theLB); svc != nil {
		svc.Spec.Ports = nil
		w.put(theLB, svc)
	}
}

func (w *world) askForReset() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	w.requests++
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[names.AnnotationResetRequest] = fmt.Sprint("request ", w.requests)
	w.put(theVM, vm)
	w.note("a reset is asked for")
}

func (w *world) drift() {
	if cm := get[*corev1.ConfigMap](w, theConfig); cm != nil {
		cm.Data[names.ConfigKey] = "drift"
		w.put(theConfig, cm)
	}
}

// node lets a node die or return. The pods of a dead node that was switched off are
// force-deleted.
func (w *world) node() {
	n := []string{"n1", "n2"}[w.choose("node", 2)]
	if !w.dead[n] {
		w.dead[n] = true
		if w.choose("was ready", 4) > 0 { // of others the node controller marks no pods
			w.says(n, corev1.ConditionFalse)
		}
		w.note("node %s does not answer", n)
		return
	}
	if w.choose("force", 2) == 0 {
		w.upsets++
		for _, k := range w.keys("pod/") {
			if pod := get[*corev1.Pod](w, k); pod != nil && pod.Spec.NodeName == n {
				delete(w.guests, pod.UID)
				if pod.DeletionTimestamp != nil {
					w.put(k, nil)
				}
			}
		}
		for uid, g := range w.guests {
			if g.pod.Spec.NodeName == n {
				delete(w.guests, uid)
			}
		}
		return
	}
	w.repair(n)
}

// says is the report of the node controller about a node's pods, or of its kubelet when it is
// back.
func (w *world) says(n string, ready corev1.ConditionStatus) {
	for _, k := range w.keys("pod/") {
		pod := get[*corev1.Pod](w, k)
		if pod == nil || pod.Spec.NodeName != n || pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		pod.Status.ContainerStatuses[0].Ready = true
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready})
		w.put(k, pod)
	}
}

// repair brings a node back. Its kubelet finds containers that have ended.
func (w *world) repair(n string) {
	w.dead[n] = false
	w.says(n, corev1.ConditionTrue)
	for _, k := range w.keys("pod/") {
		pod := get[*corev1.Pod](w, k)
		if pod != nil && pod.Spec.NodeName == n && pod.Status.Phase == corev1.PodRunning && w.guests[pod.UID] == nil {
			w.finish(pod, "node-failure")
		}
	}
	w.note("node %s answers", n)
}
