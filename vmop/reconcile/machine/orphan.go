package machine

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A machine that is deleted with --cascade=orphan leaves its pod, and the guest in it
// runs on. Who makes a machine of the same name later has that pod for it, if it is the
// same machine by its UUID and its disks.
//
// Names, labels and the owner that the garbage collector removes prove nothing about a
// pod: a copy from a backup has the same. What counts is what the operator writes on
// the pod when it lets the machine go, which nobody else can have meant: the UID of the
// machine and the pod's own. Who may write that on a pod may delete the pod.

// orphanRecord is the annotation of a pod whose machine is let go.
func orphanRecord(vm, pod types.UID) string { return string(vm) + " " + string(pod) }

// leaves reports whether the pod of a machine that is being deleted is to run on: the
// garbage collector is asked to orphan it, or has done so. The pod that it has taken
// the owner from says which machine it was made for.
func (d *decision) leaves() bool {
	if slices.Contains(d.s.VM.Finalizers, metav1.FinalizerOrphanDependents) {
		return true
	}
	return d.pod.state == podForeign && d.wasOurs()
}

// wasOurs reports whether the pod without an owner was made for this machine.
func (d *decision) wasOurs() bool {
	pod := d.pod.pod
	return len(pod.OwnerReferences) == 0 && watched(pod) && d.s.VM.UID != "" &&
		(pod.Annotations[names.AnnotationMadeFor] == string(d.s.VM.UID) || pod.UID == d.executedIn())
}

// orphan notes on the pod of a machine that is let go that it is one's own: the next
// machine of the name may have it. What cannot be noted keeps nobody.
func (d *decision) orphan() {
	pod := d.pod.pod
	if pod == nil || pod.DeletionTimestamp != nil || finished(pod) || d.s.VM.UID == "" || !d.owned(pod) && !d.wasOurs() {
		return
	}
	record := orphanRecord(d.s.VM.UID, pod.UID)
	if pod.Annotations[names.AnnotationOrphaned] == record {
		return
	}
	d.do(reconcile.AnnotatePod{Name: pod.Name, UID: pod.UID, Annotations: map[string]*string{names.AnnotationOrphaned: &record}}, &d.running)
}

// orphaned is for a pod that the former machine of the name has left. Nothing of what
// its guest depends on, as the configuration, is touched before the machine has it.
func (d *decision) orphaned() {
	d.findRestart()
	pod, object := d.pod.pod, named(names.KindPod, d.pod.pod.Name)
	if !d.valid() || !d.allowed() {
		d.running.setProblem(d.configuration.reason, d.machine(), "pod %s of the former machine of this name runs on and is not taken over: the specification is not valid or not allowed; see condition %s",
			pod.Name, spec.ConditionConfigurationApplied)
		return
	}
	unknown := finding{status: metav1.ConditionUnknown, reason: spec.ReasonConfigurationNotApplied, message: "pod " + pod.Name + " of the former machine of this name comes first"}
	d.configuration, d.devices = unknown, unknown
	d.devices.reason = spec.ReasonBlockDevicesNotReady
	if why := d.disagrees(); why != "" {
		if d.running.setProblem(spec.ReasonPodNotAdopted, object, "pod %s of the former machine is not taken over: %s; correct the manifest, or delete the pod", pod.Name, why) {
			d.running.further = ": its guest runs on, and kubectl delete pod " + pod.Name + " ends it, after which the machine is started"
		}
		return
	}
	d.hold()
	d.running.setWaiting(spec.ReasonPodAdopted, object, "pod %s of the former machine of this name is taken over; its guest runs on", pod.Name)
	if !d.held() {
		return // the pod is taken when that is seen
	}
	yes := true
	annotations := map[string]*string{names.AnnotationOrphaned: nil}
	set := func(key, value string) {
		if annotations[key] = nil; value != "" {
			annotations[key] = &value
		}
	}
	set(names.AnnotationMadeFor, string(d.s.VM.UID))
	set(names.AnnotationAdopted, adoption(d.s.VM.UID, d.s.Now))
	set(names.AnnotationStarted, startedAnew(pod.Annotations[names.AnnotationStarted]))
	// What was asked of nobody yet is not asked of this guest.
	set(names.AnnotationForceStop, d.s.VM.Annotations[names.AnnotationForceStop])
	set(names.AnnotationPowerRequest, d.s.VM.Annotations[names.AnnotationPowerRequest])
	if d.do(reconcile.AdoptPod{
		Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Annotations: annotations,
		Owner: metav1.OwnerReference{
			APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine, Name: d.vm.Name, UID: d.s.VM.UID,
			Controller: &yes, BlockOwnerDeletion: &yes,
		},
	}, &d.running) {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: spec.ReasonPodAdopted, Action: "Adopt",
			Note:    "pod " + pod.Name + " of the former machine of this name is taken over; its guest runs on",
			Related: d.related(object),
		})
	}
}
