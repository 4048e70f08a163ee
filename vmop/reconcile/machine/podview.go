package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// podState is how the machine's foremost pod is, see [Snapshot.Pod].
type podState int

const (
	// podAbsent: there is none.
	podAbsent podState = iota
	// podForeign: it is not the machine's, but perhaps that of another machine
	// that had the name.
	podForeign
	// podOrphaned: the former machine of the name was deleted without it.
	podOrphaned
	// podTerminating: it is being deleted; a machine may still run in it.
	podTerminating
	// podFinished: no container of it runs or will run.
	podFinished
	// podPending: no container of it has ever run.
	podPending
	// podRunning: the runner runs, or ran and is started again by the kubelet,
	// as VM-Operator has it.
	podRunning
)

// podView is what is known about the pod.
type podView struct {
	state     podState
	pod       *corev1.Pod
	container *corev1.ContainerStatus // nil if the kubelet has not reported
}

func lookAtPod(s *Snapshot, vm *spec.VirtualMachine) podView {
	pod, role := s.foremost()
	if pod == nil {
		return podView{}
	}
	v := podView{pod: pod, container: runnerOf(pod, vm.Name)}
	switch {
	case role == roleOrphaned:
		v.state = podOrphaned
	case role != roleActive:
		v.state = podForeign
	case pod.DeletionTimestamp != nil:
		v.state = podTerminating
	case finished(pod):
		v.state = podFinished
	case v.hasStarted():
		v.state = podRunning
	default:
		v.state = podPending
	}
	return v
}

// runnerOf is what a pod says of the runner, which has the machine's name; nil if
// the kubelet has not reported.
func runnerOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	var found *corev1.ContainerStatus
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; found == nil || c.Name == name {
			found = c
		}
	}
	return found
}

// runnerContainer is the container of the runner, which has the machine's name; nil
// if the pod has none at all.
func runnerContainer(pod *corev1.Pod, name string) *corev1.Container {
	var found *corev1.Container
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; found == nil || c.Name == name {
			found = c
		}
	}
	return found
}

// hinderingInit is what a pod says of a container before the runner that has not
// ended well, because of which the runner has not started; nil if there is none.
func hinderingInit(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			return c
		}
	}
	return nil
}

// WaitsFor is why nothing of a machine's pod has run yet; empty if something has,
// or if it never will.
func WaitsFor(pod *corev1.Pod) string {
	v := podView{pod: pod, container: runnerOf(pod, objects.MachineOf(pod))}
	if finished(pod) || v.hasStarted() {
		return ""
	}
	h := v.hindrance(nil)
	return h.reason + ": " + h.message
}

func (v *podView) hasStarted() bool {
	c := v.container
	if c == nil {
		// A pod that runs may have no container statuses yet.
		return v.pod.Status.Phase == corev1.PodRunning
	}
	return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
}

// givenTo is the user to whom the pod has given the files of VM-Operator's runner:
// what does so has ended well when the runner starts. It is empty if the pod has
// done nothing of the kind.
func (v *podView) givenTo() string {
	if v.state == podAbsent || v.state == podForeign || v.state == podOrphaned || !v.hasStarted() {
		return ""
	}
	return v.pod.Annotations[names.AnnotationDataOwner]
}

// former reports whether VM-Operator has made the pod: its runner reports under a name
// of its own.
func (v *podView) former() bool {
	return v.exists() && v.pod.Annotations[names.AnnotationApplied] == ""
}

// exists reports whether the pod is the machine's and may have a guest in it.
func (v *podView) exists() bool {
	return v.state == podTerminating || v.state == podPending || v.state == podRunning
}

// end is why a pod ended.
type podEnd struct {
	cause, message string
	qemuStatus     string
	// advice is what to change, which the event of the end says; empty if there is nothing.
	advice  string
	failure bool
	at      time.Time
	ran     time.Duration
}

// shortRun is the time that a machine must have run for its end to be an
// ordinary one: what ends sooner, for whatever cause, would soon end again.
const shortRun = time.Minute

// ended reads the end of a pod that is finished.
func (v *podView) ended(now time.Time) podEnd {
	e := podEnd{cause: v.pod.Status.Reason, message: v.pod.Status.Message, failure: true, at: now}
	var t *corev1.ContainerStateTerminated
	if c := v.container; c != nil {
		if t = c.State.Terminated; t == nil {
			t = c.LastTerminationState.Terminated
		}
	}
	if c := hinderingInit(v.pod); t == nil && c != nil {
		t = c.State.Terminated
	}
	if t != nil {
		e.fromContainer(t)
		// The clocks of the nodes may differ.
		if at := t.FinishedAt.Time; !at.IsZero() && at.Before(now) {
			e.at = at
		}
		if !t.StartedAt.IsZero() && t.FinishedAt.After(t.StartedAt.Time) {
			e.ran = t.FinishedAt.Sub(t.StartedAt.Time)
		}
	}
	if e.cause == "" {
		e.cause = "PodFailed"
		if v.pod.Status.Phase == corev1.PodSucceeded {
			e.cause, e.failure = "PodSucceeded", false
		}
	}
	if e.message == "" {
		e.message = "the pod ended and did not say why"
	}
	return e
}

// maxQEMUStatus is more than a system says of a process that has ended, in bytes;
// the definition has it, too.
const maxQEMUStatus = 64

// reasonOOMKilled is the kubelet's for a container of which a process was killed for lack
// of memory. Where a control group is killed as one, which is usual with version 2, that
// is the runner, together with QEMU, and it can explain nothing. With version 1 it is
// QEMU, and the runner tells only that there was no memory left.
const reasonOOMKilled = "OOMKilled"

// fromContainer takes what the runner wrote, else what the kubelet found. What
// the kubelet did to the pod as a whole, such as an eviction, says more than how
// the runner took it.
func (e *podEnd) fromContainer(t *corev1.ContainerStateTerminated) {
	o, told := runnerconfig.ParseOutcome(t.Message)
	if told && len(o.QEMUStatus) <= maxQEMUStatus {
		e.qemuStatus = strings.ToValidUTF8(o.QEMUStatus, "")
	}
	switch {
	case e.cause != "":
		if told {
			e.message = strings.TrimSpace(e.message + " (" + o.Message + ")")
		}
	case told && o.Cause.Failure() && o.QEMUStatus == runnerconfig.StatusKilled && t.Reason == reasonOOMKilled:
		// The runner has outlived it, and does not know what the machine needs.
		e.cause, e.message = reasonOOMKilled, o.Message
	case told:
		e.cause, e.message, e.failure = string(o.Cause), o.Message, o.Cause.Failure()
	default:
		e.cause, e.failure = t.Reason, t.ExitCode != 0
		if e.message = strings.TrimSpace(t.Message); e.message == "" {
			e.message = fmt.Sprintf("the runner ended with exit code %d", t.ExitCode)
		}
	}
}

// hindrance is why a pod that has not started has not. The others are pods that
// take ports of nodes, see [ContendedPorts].
func (v *podView) hindrance(others []corev1.Pod) (f finding) {
	pod := v.pod
	object := named(names.KindPod, pod.Name)
	c := v.container
	if init := hinderingInit(pod); init != nil && init.State.Waiting != nil {
		c = init
	}
	if c != nil && c.State.Waiting != nil {
		w := c.State.Waiting
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing":
		case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
			image := runnerContainer(pod, objects.MachineOf(pod)).Image
			f.setProblem(w.Reason, "image "+image, "image %s of the runner cannot be pulled: %s; correct spec.image, or make the image available to node %s",
				image, w.Message, pod.Spec.NodeName)
			return f
		case "CreateContainerConfigError":
			f.setProblem(w.Reason, object, "pod %s: %s; create what is missing", pod.Name, w.Message)
			return f
		default:
			f.setProblem(w.Reason, object, "pod %s: %s; see kubectl describe pod %[1]s", pod.Name, w.Message)
			return f
		}
	}
	if c := v.unscheduled(); c != nil {
		reason := c.Reason
		if reason == "" {
			reason = corev1.PodReasonUnschedulable
		}
		step := contention(pod, others)
		if step == "" {
			step = "make room, or change what the machine asks of a node"
		}
		f.setProblem(reason, object, "no node takes pod %s: %s", pod.Name, nextStep(c.Message, step))
		// The scheduler says so also of a pod whose claims are just being bound,
		// or whose predecessor has just gone.
		f.brief = true
		return f
	}
	if pod.Spec.NodeName == "" {
		f.setWaiting(spec.ReasonPodNotStarted, object, waitsForNode, pod.Name)
		return f
	}
	f.setWaiting(spec.ReasonPodNotStarted, object+" on node "+pod.Spec.NodeName,
		"pod %s is being started on node %s: its image is pulled and its volumes are mounted; see kubectl describe pod %[1]s", pod.Name, pod.Spec.NodeName)
	return f
}

// unscheduled is what the scheduler says of a pod that no node takes, nil if it says
// nothing.
func (v *podView) unscheduled() *corev1.PodCondition {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

// scheduled is when a node took the pod; zero if that is not known.
func (v *podView) scheduled() time.Time {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// disruption is what Kubernetes says of a pod that it ends, nil if it does not.
func (v *podView) disruption() *corev1.PodCondition {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// waitsForNode is what there is to say of a pod that was just made.
const waitsForNode = "pod %s waits for a node; see kubectl describe pod %[1]s"

// nextStep ends a message of Kubernetes with what can be done.
func nextStep(message, step string) string {
	return strings.TrimRight(strings.TrimSpace(message), ".") + "; " + step
}

// silent reports whether the node of a pod that should run does not report.
func (v *podView) silent() bool {
	if v.pod.Status.Phase == corev1.PodUnknown || v.pod.Status.Reason == "NodeLost" {
		return true
	}
	for i := range v.pod.Status.Conditions {
		c := &v.pod.Status.Conditions[i]
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue &&
			v.container != nil && v.container.State.Running != nil && v.container.Ready {
			return true
		}
	}
	return false
}
