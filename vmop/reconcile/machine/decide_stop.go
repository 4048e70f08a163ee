package machine

import (
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// podGoes is the message about a terminating pod until it ends; one text, so that it is one
// write.
const podGoes = "pod %s is being deleted; its guest has the grace period of the pod to shut down, which vmop-cli stop --force cuts short"

// terminating handles a pod that is being deleted. Nothing is done to it: only its kubelet knows
// when the guest has stopped.
func (d *decision) terminating() {
	pod := d.pod.pod
	d.hurry()
	d.noteLost()
	d.noteDisruption()
	stuck, object := d.stuck(pod)
	switch {
	case d.lost() && stuck == "":
		d.running.setProblem(spec.ReasonNodeLost, named(names.KindNode, pod.Spec.NodeName), "node %s does not report about pod %s, which is being deleted; repair the node: the machine may still run there", pod.Spec.NodeName, pod.Name)
		return
	case d.lost():
		d.running.setProblem(spec.ReasonNodeLost, object, "node %s has not reported the end of pod %s, which%s", pod.Spec.NodeName, pod.Name, stuck)
		return
	case stuck != "":
		d.running.setProblem(spec.ReasonPodTerminating, object, "pod %s%s", pod.Name, stuck)
		return
	}
	if !d.wanted() || d.s.VM.DeletionTimestamp != nil {
		// Where the end was requested no event is needed: the runner reports that it has begun.
		object = ""
	}
	if finished(pod) {
		d.running.setWaiting(spec.ReasonPodTerminating, object, "pod %s has ended and is being deleted; there is a new one when it is gone", pod.Name)
		return
	}
	d.running.setWaiting(spec.ReasonPodTerminating, object, podGoes, pod.Name)
}

// hurry shortens the grace period of a terminating pod if the machine's has become shorter or a
// stop was forced. The runner polls for that while it waits for the guest; an earlier version's
// runner is ended by its kubelet.
func (d *decision) hurry() {
	pod := d.pod.pod
	if has := pod.DeletionGracePeriodSeconds; has != nil && *has > d.grace() && !finished(pod) {
		d.deletePod()
	}
}

// grace returns the time for the guest to shut down and the runner to end QEMU, in seconds.
func (d *decision) grace() int64 {
	if d.forced() {
		return objects.TerminationReserve
	}
	return d.vm.Spec.ShutdownSeconds() + objects.TerminationReserve
}

func (d *decision) forced() bool {
	request := d.s.VM.Annotations[names.AnnotationForceStop]
	return request != "" && d.pod.pod != nil && d.pod.pod.Annotations[names.AnnotationForceStop] != request
}

// stuck explains a terminating pod that should have been deleted by now; text is empty for any
// other. The object is what is waited for: the pod, or the node that keeps it.
func (d *decision) stuck(pod *corev1.Pod) (text, object string) {
	object = named(names.KindPod, pod.Name)
	if late := stuckAt(pod); d.s.Now.Before(late) {
		d.wakeAt(late)
		return "", object
	}
	if pod.Spec.NodeName == "" {
		return " should be gone since " + pod.DeletionTimestamp.UTC().Format(time.RFC3339) + "; see kubectl describe pod " + pod.Name, object
	}
	return " should be gone since " + pod.DeletionTimestamp.UTC().Format(time.RFC3339) +
		"; if node " + pod.Spec.NodeName + " is off for certain: kubectl delete pod " + pod.Name + " --force", named(names.KindNode, pod.Spec.NodeName)
}

func (d *decision) untilGone(pod *corev1.Pod) (text, object string) {
	if text, object = d.stuck(pod); text == "" {
		text = " is being deleted; the machine is started when it is gone"
	}
	return text, object
}

// stop sets spec.vm.state, the only field of a specification that the operator writes, for a pod
// that has ended and itself reports that its guest wanted it. A status alone, whoever wrote it,
// is not enough: if the pod was removed in between, the machine starts again.
func (d *decision) stop() {
	d.do(reconcile.Patch{
		Kind: names.KindVirtualMachine, Name: d.vm.Name, UID: d.s.VM.UID, ResourceVersion: d.s.VM.ResourceVersion,
		Manager: names.OperatorStatusManager,
		Fields:  map[string]any{"spec": map[string]any{"vm": map[string]any{"state": string(spec.StateStopped)}}},
	}, &d.running)
	d.running.setFalse(spec.ReasonPodFinished, "the guest powered itself off; spec.vm.state becomes Stopped, as spec.guestShutdownStops asks")
}

func (d *decision) deletePod() bool { return d.deleteVersion("") }

// deleteEnded deletes the ended pod of the last run, after those that ended before it: otherwise
// one of them would be taken for the last, and its end reported, counted and followed once more.
func (d *decision) deleteEnded() {
	for i, role := range d.s.roles() {
		pod := &d.s.Pods[i]
		if role != roleLeftover || pod.DeletionTimestamp != nil {
			continue
		}
		if !d.do(reconcile.DeletePod{Name: pod.Name, UID: pod.UID, GraceSeconds: d.grace()}, &d.running) {
			return
		}
	}
	d.deletePod()
}

// deleteVersion deletes the pod if it still has a resource version; any if that is empty.
func (d *decision) deleteVersion(version string) bool {
	return d.do(reconcile.DeletePod{Name: d.pod.pod.Name, UID: d.pod.pod.UID, ResourceVersion: version, GraceSeconds: d.grace()}, &d.running)
}
