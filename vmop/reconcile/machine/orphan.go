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

// A machine deleted with --cascade=orphan leaves its pod, in which the guest runs on. A machine
// created later with the same name takes that pod over if UUID and disks match.
//
// Names, labels and the owner reference that the garbage collector removes prove nothing about a
// pod: a copy from a backup has the same. What counts is the operator's record on the pod,
// written when the machine is released: the UIDs of machine and pod. A user who may write that on
// a pod may delete the pod.

func orphanRecord(vm, pod types.UID) string { return string(vm) + " " + string(pod) }

// leaves reports whether the pod of a machine that is being deleted is to run on: the garbage
// collector is asked to orphan it, or has done so. A pod without its owner reference records
// which machine it was made for.
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

// orphan records on the pod of a released machine that the next machine of the name may take it
// over. A failure to record it does not hold the machine.
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

// orphaned handles a pod left by the former machine of the name. What its guest depends on, such
// as the configuration, is not touched before the machine has taken it over.
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
		return // the pod is taken over when that is observed
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
	// Former requests do not apply to this guest.
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
