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

// podState is the state of the machine's foremost pod, see [Snapshot.Pod].
type podState int

const (
	// podAbsent: there is none.
	podAbsent podState = iota
	// podForeign: not the machine's, but perhaps that of a former machine of the name.
	podForeign
	// podOrphaned: the former machine of the name was deleted without it.
	podOrphaned
	// podTerminating: being deleted; a machine may still run in it.
	podTerminating
	// podFinished: no container of it runs or will run.
	podFinished
	// podPending: no container of it has ever run.
	podPending
	// podRunning: the runner runs, or ran and is restarted by the kubelet, as VM-Operator has it.
	podRunning
)

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

// runnerOf returns the status of the runner's container, which has the machine's name; nil if the
// kubelet has not reported.
func runnerOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	var found *corev1.ContainerStatus
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; found == nil || c.Name == name {
			found = c
		}
	}
	return found
}

// runnerContainer returns the container of the runner, which has the machine's name; nil if the
// pod has none at all.
func runnerContainer(pod *corev1.Pod, name string) *corev1.Container {
	var found *corev1.Container
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; found == nil || c.Name == name {
			found = c
		}
	}
	return found
}

// hinderingInit returns an init container that has not ended well and thus keeps the runner from
// starting, or nil.
func hinderingInit(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			return c
		}
	}
	return nil
}

// WaitsFor returns why nothing of a machine's pod has run yet; empty if something has, or never
// will.
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
		// A running pod may have no container statuses yet.
		return v.pod.Status.Phase == corev1.PodRunning
	}
	return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
}

// givenTo returns the user to whom the pod has given the files of VM-Operator's runner, an init
// container that ended well if the runner has started; empty if it has not.
func (v *podView) givenTo() string {
	if v.state == podAbsent || v.state == podForeign || v.state == podOrphaned || !v.hasStarted() {
		return ""
	}
	return v.pod.Annotations[names.AnnotationDataOwner]
}

// former reports whether VM-Operator created the pod: its runner reports under another name.
func (v *podView) former() bool {
	return v.exists() && v.pod.Annotations[names.AnnotationApplied] == ""
}

func (v *podView) exists() bool {
	return v.state == podTerminating || v.state == podPending || v.state == podRunning
}

type podEnd struct {
	cause, message string
	qemuStatus     string
	// advice is what to change, for the event; empty if nothing.
	advice  string
	failure bool
	at      time.Time
	ran     time.Duration
}

// shortRun is how long a machine must have run for its end to be ordinary: what ends sooner, for
// whatever cause, would soon end again.
const shortRun = time.Minute

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

// maxQEMUStatus is more than a system reports of an ended process, in bytes; the definition has
// the same limit.
const maxQEMUStatus = 64

// reasonOOMKilled is the kubelet's reason for a container of which a process was killed for lack
// of memory. With control groups version 2 usually the whole group is killed, including the
// runner, which cannot report then. With version 1 it is QEMU, and the runner reports only that
// there was no memory left.
const reasonOOMKilled = "OOMKilled"

// reasonContainerStatusUnknown is the kubelet's reason for a container that the runtime does not
// know any more, and reasonUnknown is containerd's for one that it knows and whose end it has
// missed: all processes of the node have ended with it, or without it.
const (
	reasonContainerStatusUnknown = "ContainerStatusUnknown"
	reasonUnknown                = "Unknown"
)

// fromContainer takes what the runner wrote, else what the kubelet reports. A cause for the whole
// pod, such as an eviction, takes precedence.
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
		// The runner has outlived QEMU, and does not know what the machine needs.
		e.cause, e.message = reasonOOMKilled, o.Message
	case told:
		e.cause, e.message, e.failure = string(o.Cause), o.Message, o.Cause.Failure()
	case t.Reason == reasonUnknown || t.Reason == reasonContainerStatusUnknown:
		e.cause, e.message = reasonContainerStatusUnknown, "its node does not know how the runner ended, as when it has lost its power or was restarted"
	default:
		e.cause, e.failure = t.Reason, t.ExitCode != 0
		if e.message = strings.TrimSpace(t.Message); e.message == "" {
			e.message = fmt.Sprintf("the runner ended with exit code %d", t.ExitCode)
		}
	}
}

// hindrance returns why a pending pod has not started. The others are pods that take ports of
// nodes, see [ContendedPorts].
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
		// The scheduler reports this also while claims are being bound, or just after the
		// predecessor was deleted.
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

func (v *podView) unscheduled() *corev1.PodCondition {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

func (v *podView) scheduled() time.Time {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func (v *podView) disruption() *corev1.PodCondition {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

const waitsForNode = "pod %s waits for a node; see kubectl describe pod %[1]s"

func nextStep(message, step string) string {
	return strings.TrimRight(strings.TrimSpace(message), ".") + "; " + step
}

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
