package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

const (
	// unwatchedRetry is the retry interval for a pod that is not watched and keeps the machine
	// from being started.
	unwatchedRetry = 10 * time.Second
	// nameRetry is the retry interval for a foreign object with a name that the machine needs. It
	// is not watched either.
	nameRetry = time.Minute
)

func (d *decision) power() {
	switch d.pod.state {
	case podAbsent:
		d.absent()
	case podForeign:
		d.foreign()
	case podTerminating:
		d.terminating()
	case podFinished:
		d.finished()
	case podPending:
		d.pending()
	case podRunning:
		d.runs()
	}
}

func (d *decision) absent() {
	unnoted := d.noteLost()
	if !d.wanted() {
		d.running.setFalse(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
		return
	}
	switch {
	case d.invalid:
		d.running.setProblem(d.configuration.reason, d.machine(), "the specification is not valid or not allowed; see condition %s", spec.ConditionConfigurationApplied)
	case d.unfit():
		d.running.inherit(d.unfitness())
	case d.unsuitable:
		d.running.inherit(d.configuration)
	case d.unmade && !d.devices.ok() && d.devices.warning:
		d.running.inherit(d.devices)
	case d.filling && !d.devices.ok(): // for long, perhaps
		d.running.inherit(d.devices)
	case d.unmade && d.provisioning.warning:
		d.running.inherit(d.provisioning)
	case d.unmade && !d.configuration.ok():
		d.running.inherit(d.configuration)
	case d.unmade:
		d.running.setWaiting(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "pod %s waits for the objects that it needs, which are being made; it follows when they are there", d.nextPod())
	case d.disksInUse(), d.delayed(), d.unreported(), d.exporting():
	case unnoted:
		// Another pod would destroy the evidence: it is written first, and acted upon when
		// observed.
		d.endIsNoted()
	case d.unanswered():
		d.running.setWaiting(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "that the machine is to run is being noted; pod %s is made then", d.nextPod())
	default:
		if d.do(reconcile.Create{Object: d.newPod()}, &d.running) {
			d.creates = true
			d.running.setWaiting(spec.ReasonPodNotStarted, named(names.KindPod, d.nextPod()), waitsForNode, d.nextPod())
		}
	}
}

// disksInUse reports whether another pod may write to a disk of the machine. A terminating pod
// may until it is deleted: its node may be alive though it does not report.
func (d *decision) disksInUse() bool {
	for i, role := range d.s.roles() {
		pod := &d.s.Pods[i]
		name := d.usedBy(pod)
		if role != roleSharing || name == "" {
			continue
		}
		if !watched(pod) {
			d.wakeAt(d.s.Now.Add(unwatchedRetry))
		}
		if pod.DeletionTimestamp != nil {
			until, object := d.untilGone(pod)
			d.running.setProblem(spec.ReasonDisksInUse, object, "pod %s uses claim %s and%s", pod.Name, name, until)
		} else {
			d.running.setProblem(spec.ReasonDisksInUse, named(names.KindPod, pod.Name), "pod %s uses claim %s; the machine is started when it has ended", pod.Name, name)
		}
		return true
	}
	return false
}

func (d *decision) usedBy(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := pod.Spec.Volumes[i].PersistentVolumeClaim
		if v == nil {
			continue
		}
		for j := range d.claims {
			if c := &d.claims[j]; c.name == v.ClaimName && !c.ofImage() {
				return v.ClaimName
			}
		}
	}
	return ""
}

// unreported reports whether the status still says that the machine runs, which a new runner must
// not find.
func (d *decision) unreported() bool {
	if d.reportedStopped() {
		return false
	}
	d.endIsNoted()
	return true
}

func (d *decision) foreign() {
	pod := d.pod.pod
	former := false
	for _, r := range pod.OwnerReferences {
		former = former || r.Kind == spec.KindVirtualMachine && r.Name == d.vm.Name
	}
	switch {
	case !d.wanted():
		d.running.setFalse(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
	case former && pod.DeletionTimestamp != nil:
		until, object := d.untilGone(pod)
		d.running.setProblem(spec.ReasonDisksInUse, object, "pod %s of the former machine of this name%s", pod.Name, until)
	case isOrphan(pod, d.vm.Name) && pod.DeletionTimestamp != nil:
		until, object := d.untilGone(pod)
		d.running.setProblem(spec.ReasonDisksInUse, object, "pod %s, left by the former machine,%s", pod.Name, until)
	case former:
		d.running.setProblem(spec.ReasonDisksInUse, named(names.KindPod, pod.Name), "pod %s is that of the former machine of this name; the machine is started when Kubernetes has deleted it", pod.Name)
	default:
		d.wakeAt(d.s.Now.Add(nameRetry))
		d.running.setProblem(spec.ReasonNameTaken, named(names.KindPod, pod.Name), "pod %s is not the machine's; delete it or rename the machine", pod.Name)
	}
}

// pending handles a pod that has not started. If it would be made otherwise now it is replaced:
// the cause may have been corrected, and no guest runs in it.
func (d *decision) pending() {
	pod := d.pod.pod
	d.noteLost()
	if !d.wanted() {
		d.deletePod()
		d.running.setFalse(spec.ReasonPodTerminating, podGoes, pod.Name)
		return
	}
	if d.outdated() && d.deleteVersion(pod.ResourceVersion) { // its guest may have started meanwhile
		d.running.setWaiting(spec.ReasonPodTerminating, named(names.KindPod, pod.Name), "pod %s has not started and is replaced, because the machine has changed; there is a new one when it is gone", pod.Name)
		return
	}
	if d.running.ok() {
		d.running = d.pod.hindrance(d.s.PortPods)
		d.awaitsVolume()
	}
}

// awaitsVolume names the claim without a volume because of which no node takes the pod; the
// scheduler does not.
func (d *decision) awaitsVolume() {
	why := d.pod.unscheduled()
	if why == nil || d.devices.ok() || d.devices.reason != spec.ReasonBlockDevicesNotReady ||
		!strings.Contains(strings.ToLower(why.Message), "persistentvolume") && !strings.Contains(strings.ToLower(why.Message), "persistent volume") {
		return
	}
	text := strings.TrimRight(strings.TrimSpace(why.Message), ".")
	if _, reasons, counted := strings.Cut(text, " nodes are available: "); counted {
		text = reasons
	}
	object, brief := d.running.object, d.running.brief
	d.running = d.devices
	d.running.object, d.running.brief = object, brief
	d.running.message += " (no node takes pod " + d.pod.pod.Name + ": " + text + ")"
}

// outdated reports whether a pod that has not started would be made otherwise now. One of
// VM-Operator is left alone.
func (d *decision) outdated() bool {
	digest := d.pod.pod.Annotations[names.AnnotationApplied]
	if digest == "" || d.unmade || d.unsuitable || d.invalid || d.unfit() {
		return false
	}
	now := d.plainPod()
	reconcile.Stamp(now)
	return now.Annotations[names.AnnotationApplied] != digest || len(d.awaiting) > 0 || d.restartAsked() || d.mountsTooMuch()
}

// mountsTooMuch reports whether a pod has a volume for an attachment that was deleted or is being
// deleted, which may keep the pod from starting.
func (d *decision) mountsTooMuch() bool {
	return slices.ContainsFunc(objects.AttachedBy(d.pod.pod), func(m objects.Attached) bool {
		return !slices.ContainsFunc(d.s.Attachments, func(a spec.VirtualMachineBlockDeviceAttachment) bool {
			return a.UID == m.For && a.DeletionTimestamp == nil
		})
	})
}

func (d *decision) runs() {
	pod := d.pod.pod
	d.noteLost()
	switch {
	case !d.wanted():
		d.deletePod()
		d.running.setFalse(spec.ReasonPodTerminating, podGoes, pod.Name)
	case d.pod.silent():
		d.running.setProblem(spec.ReasonNodeLost, named(names.KindNode, pod.Spec.NodeName), "node %s does not report about pod %s; repair the node: the machine is not started elsewhere while it may still run there",
			pod.Spec.NodeName, pod.Name)
	case d.pod.container != nil && d.pod.container.State.Terminated != nil:
		// The kubelet updates the pod a moment after the container.
		d.running.setWaiting(spec.ReasonPodFinished, named(names.KindPod, pod.Name), "the runner in pod %s has ended, and its node is about to say what becomes of the pod", pod.Name)
	case d.pod.container != nil && d.pod.container.State.Running == nil:
		// The kubelet restarts only pods of VM-Operator.
		h := d.pod.hindrance(nil)
		if !h.warning {
			h.message = "the runner in pod " + pod.Name + " has ended; the kubelet starts it again"
		}
		d.running.setProblem(h.reason, h.object, "%s", h.message)
	case d.restarts && (d.executedIn() != "" || d.deletePod()):
		// That it is wanted is written to the status first; then the pod is deleted.
		d.running.setWaiting(spec.ReasonPodTerminating, named(names.KindPod, pod.Name), podGoes, pod.Name)
	case d.unheard():
	default:
		reason, message := spec.ReasonPodRunning, "pod "+pod.Name+" runs on node "+pod.Spec.NodeName
		if d.heldBack != nil {
			reason, message = d.saysHeld(message)
		}
		d.running.setTrue(reason, message)
	}
}

// annotatePod makes the kubelet update mounted files at once, and copies labels and annotations
// of the machine to its pod, in one write.
func (d *decision) annotatePod() {
	if d.pod.state != podRunning && d.pod.state != podPending || !d.wanted() {
		return
	}
	for _, a := range d.plan.Actions {
		if _, deleted := a.(reconcile.DeletePod); deleted {
			return
		}
	}
	labels, annotations := objects.PassOn(d.s.VM, &d.s.Settings.Allowed).Missing(d.pod.pod)
	if d.configured {
		note := func(key, version string) {
			if has, ok := d.pod.pod.Annotations[key]; ok && has == version {
				return
			}
			if annotations == nil {
				annotations = map[string]*string{}
			}
			annotations[key] = new(version)
		}
		if again := d.refresh(); again != "" {
			note(names.AnnotationRefreshed, again)
		}
		note(names.AnnotationConfigVersion, d.s.ConfigMap.ResourceVersion)
		if d.secret != nil {
			note(names.AnnotationDisplayVersion, d.secret.ResourceVersion)
		}
	}
	if annotations != nil {
		d.do(reconcile.AnnotatePod{Name: d.pod.pod.Name, UID: d.pod.pod.UID, Annotations: annotations, Labels: labels}, &d.configuration)
	}
}
