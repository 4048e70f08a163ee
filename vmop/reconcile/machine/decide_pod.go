package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// actionRun is the action of the events about the runs of a machine.
const actionRun = "Run"

// TellsEnd reports whether an event tells of the end of a machine, other than on
// request. Its reason is the cause.
func TellsEnd(e *reconcile.Event) bool {
	return e.Action == actionRun && e.Reason != reasonRestarted && e.Reason != reasonRequestRefused
}

// The reasons of other events about runs.
const (
	reasonRestarted      = "Restarted"
	reasonRequestRefused = "RequestRefused"
)

const (
	// steadyRun is how long a machine must have run for its failures before to
	// be forgotten, as the kubelet forgets them.
	steadyRun = 10 * time.Minute
	// lag is how long an observation of a pod may be behind that of its
	// machine. A machine that reports to run is believed for that long, even
	// if its pod is not to be seen.
	lag = 30 * time.Second
	// stuckAfter is how long after the end of its grace period a pod that is
	// still there is taken for stuck.
	stuckAfter = time.Minute
	// unwatchedAgain is when to look again for a pod that nobody watches and
	// that keeps the machine from being started.
	unwatchedAgain = 10 * time.Second
	// nameAgain is when to look again for an object of somebody else that has
	// the name of one of the machine's. Nobody watches it either.
	nameAgain = time.Minute
)

// power sees to it that the pod is there while the machine should run, and only
// then.
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

// absent is for a machine without a pod.
func (d *decision) absent() {
	unnoted := d.noteLost()
	if !d.wanted() {
		d.running.rest(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
		return
	}
	switch {
	case d.invalid:
		d.running.problem(d.configuration.reason, d.machine(), "the specification is not valid or not allowed; see condition %s", spec.ConditionConfigurationApplied)
	case d.unfit():
		d.running.follow(d.unfitness())
	case d.unsuitable:
		d.running.follow(d.configuration)
	case d.unmade && !d.devices.ok() && d.devices.warning:
		d.running.follow(d.devices)
	case d.unmade && d.provisioning.warning:
		d.running.follow(d.provisioning)
	case d.unmade && !d.configuration.ok():
		d.running.follow(d.configuration)
	case d.unmade:
		d.running.wait(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "pod %s waits for the objects that it needs, which are being made; it follows when they are there", d.nextPod())
	case d.disksInUse(), d.delayed(), d.unreported(), d.exporting():
	case unnoted:
		// With another pod there would be nothing left to tell it by: it is written
		// first, and acted upon when it is seen there.
		d.endIsNoted()
	case d.unanswered():
		d.running.wait(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "that the machine is to run is being noted; pod %s is made then", d.nextPod())
	default:
		if d.do(reconcile.Create{Object: d.newPod()}, &d.running) {
			d.creates = true
			d.running.wait(spec.ReasonPodNotStarted, named(names.KindPod, d.nextPod()), waitsForNode, d.nextPod())
		}
	}
}

// nextPod is the name of the pod that the machine gets next.
func (d *decision) nextPod() string { return objects.PodName(d.vm.Name) }

// newPod is the pod, with what must be known about it later.
func (d *decision) newPod() *corev1.Pod {
	pod := d.plainPod()
	reconcile.Stamp(pod)
	// Neither is in the digest: disks come and go while the pod is there.
	objects.AddAttached(pod, d.mounts)
	// Not in the digest: it is brought up to date where the pod is.
	objects.PassOn(d.s.VM, &d.s.Settings.Allowed).AddTo(pod)
	if uid := d.s.VM.UID; uid != "" {
		pod.Annotations[names.AnnotationMadeFor] = string(uid)
	}
	pod.Annotations[names.AnnotationStarted] = started(d.vm, d.classNow)
	for _, key := range []string{names.AnnotationForceStop, names.AnnotationPowerRequest} {
		if request := d.s.VM.Annotations[key]; request != "" {
			pod.Annotations[key] = request
		}
	}
	pod.Annotations[names.AnnotationConfigVersion] = d.s.ConfigMap.ResourceVersion
	if d.certificate != "" {
		pod.Annotations[names.AnnotationCertificate] = d.certificate
	}
	if d.userData != "" {
		pod.Annotations[names.AnnotationUserData] = d.userData
	}
	if d.secret != nil {
		pod.Annotations[names.AnnotationDisplayVersion] = d.secret.ResourceVersion
	}
	return pod
}

func (d *decision) plainPod() *corev1.Pod {
	return objects.Pod(d.vm, d.s.Settings, d.podInput())
}

func (d *decision) podInput() objects.PodInput {
	in := objects.PodInput{Disks: d.disks, RunnerDataClaim: d.claims[0].name, VolumeModes: d.modes, Limited: d.limited(), TakeOver: d.takesOver(), DeviceGroups: d.stored.DeviceGroups, Certificate: d.certificate, UserData: d.userData}
	if d.secret != nil {
		in.DisplaySecret = d.secret.Name
	}
	in.ImageRepository = d.s.ImageRepository != nil && machineconfig.MayUseRepository(d.vm)
	return in
}

// limited reports whether the pod has or is to have limits: one was refused
// without them. A pod that exists keeps what it was made with.
func (d *decision) limited() bool {
	if d.pod.exists() {
		r, _ := objects.RecordedRequests(d.pod.pod)
		return r.Limited
	}
	create := reconcile.Target{Verb: "create", Kind: names.KindPod, Name: d.nextPod()}
	return slices.ContainsFunc(d.s.Failures, func(f reconcile.Failure) bool { return f.Target == create && f.WantsLimits() })
}

// computesRequests reports whether the manifest leaves it to the operator what the
// pod asks for.
func (d *decision) computesRequests() bool {
	_, computed := objects.RecordedRequests(d.plainPod())
	return computed
}

// judgeLimit warns of a limit of memory that the machine meets when its guest uses
// what it has: the kernel kills QEMU then. A LimitRange of the namespace may have
// given it to the pod.
func (d *decision) judgeLimit() {
	if d.pod.state != podPending && d.pod.state != podRunning || !d.wanted() {
		return
	}
	c := runnerContainer(d.pod.pod, d.vm.Name)
	if c == nil {
		return
	}
	limit, limited := c.Resources.Limits[corev1.ResourceMemory]
	if !limited {
		return
	}
	r, recorded := objects.RecordedRequests(d.pod.pod)
	if !recorded {
		in := d.podInput()
		r = objects.NewRequests(d.vm, &d.s.Settings, &in)
	}
	guest := min(objects.GuestAmounts(d.vm).RAM, r.Maximum.RAM)
	if limit.CmpInt64(guest+r.Overhead) >= 0 {
		return
	}
	d.configuration.problem(spec.ReasonMemoryLimitTooLow, named(names.KindPod, d.pod.pod.Name),
		"pod %s may use %s of memory and is killed beyond that, but its guest has %s and QEMU needs up to %s; %s",
		d.pod.pod.Name, limit.String(), bytesText(guest), bytesText(r.Overhead), d.raiseLimit(corev1.ResourceMemory))
}

// limitBelow explains that a pod was refused because it may not use what it is to ask
// for.
func (d *decision) limitBelow(f *reconcile.Failure, about *finding) {
	reason, r := spec.ReasonWriteRefused, corev1.ResourceName(f.LimitBelow())
	if r == corev1.ResourceMemory {
		reason = spec.ReasonMemoryLimitTooLow
	}
	about.problem(reason, named(f.Target.Kind, f.Target.Name), "%s: %s; the pod asks for what its guest has and QEMU needs; %s; it is tried again within half a minute",
		f.Target, strings.TrimSpace(f.Message), d.raiseLimit(r))
}

// raiseLimit says where a limit of the runner's container comes from, and what to do.
func (d *decision) raiseLimit(r corev1.ResourceName) string {
	if given := d.vm.Spec.Resources; given != nil {
		if _, ok := given.Limits[r]; ok {
			return fmt.Sprintf("raise spec.resources.limits.%s", r)
		}
	}
	return fmt.Sprintf("a LimitRange of the namespace has given it this limit: raise its default for %s, or set spec.resources", r)
}

// bytesText is a number of bytes for people, as manifests have it.
func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// disksInUse reports whether another pod may write to a disk of the machine. A
// pod that is being deleted may until it is gone: its node may be alive though
// nobody hears of it.
func (d *decision) disksInUse() bool {
	for i, role := range d.s.roles() {
		pod := &d.s.Pods[i]
		name := d.usedBy(pod)
		if role != roleSharing || name == "" {
			continue
		}
		if !watched(pod) {
			d.wakeAt(d.s.Now.Add(unwatchedAgain))
		}
		if pod.DeletionTimestamp != nil {
			until, object := d.untilGone(pod)
			d.running.problem(spec.ReasonDisksInUse, object, "pod %s uses claim %s and is being deleted%s", pod.Name, name, until)
		} else {
			d.running.problem(spec.ReasonDisksInUse, named(names.KindPod, pod.Name), "pod %s uses claim %s; the machine is started when it has ended", pod.Name, name)
		}
		return true
	}
	return false
}

// watched reports whether the end of a pod is going to be noticed: of all pods only
// those with the labels of a runner are watched.
func watched(pod *corev1.Pod) bool {
	l := pod.Labels
	return l[names.LabelName] == names.AppName && l[names.LabelManagedBy] == names.ManagedBy && l[names.LabelComponent] == names.ComponentRunner
}

// usedBy is the name of a claim of the machine that a pod uses, empty if there
// is none.
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

// delayed reports whether it is too early to start the machine after a failure. It is not if a user
// has asked for a start since.
func (d *decision) delayed() bool {
	e := d.end
	if e == nil || e.Failures == 0 || e.ObservedGeneration != d.s.VM.Generation {
		return false
	}
	if p := d.powered; p != nil && p.Policy != "" && p.Reason == spec.PowerRequested && e.Time.Before(&p.Since) {
		return false
	}
	again := d.startAgain()
	// An end later than now was written by a clock that has been corrected since.
	if !d.s.Now.Before(again) || e.Time.After(d.s.Now) {
		return false
	}
	d.wakeAt(again)
	// The event that tells of the end tells of the delay, too.
	d.running.rest(spec.ReasonRestartDelayed, "the machine ended: %s: %s (failures in a row: %d); it is started again at %s, or as soon as its specification changes",
		e.Cause, e.Message, e.Failures, again.Format(time.RFC3339))
	return true
}

// startAgain is when a machine is started again that has ended.
func (d *decision) startAgain() time.Time {
	return d.end.Time.Add(reconcile.Backoff(restartDelay, int(d.end.Failures))).UTC()
}

// unreported reports whether the status still says that the machine runs, which a
// new runner must not find.
func (d *decision) unreported() bool {
	if d.reportedStopped() {
		return false
	}
	d.endIsNoted()
	return true
}

// endIsNoted is what a machine waits for whose pod is gone, and whose status does not
// say so yet.
func (d *decision) endIsNoted() {
	d.running.wait(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "the end of the former pod %s is being noted; the machine is started again then", d.nextPod())
}

// foreign is for a pod that has the name of the machine's next one and is not the machine's.
func (d *decision) foreign() {
	pod := d.pod.pod
	former := false
	for _, r := range pod.OwnerReferences {
		former = former || r.Kind == spec.KindVirtualMachine && r.Name == d.vm.Name
	}
	switch {
	case !d.wanted():
		d.running.rest(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
	case former && pod.DeletionTimestamp != nil:
		until, object := d.untilGone(pod)
		d.running.problem(spec.ReasonDisksInUse, object, "pod %s of the former machine of this name is being deleted%s", pod.Name, until)
	case isOrphan(pod, d.vm.Name) && pod.DeletionTimestamp != nil:
		until, object := d.untilGone(pod)
		d.running.problem(spec.ReasonDisksInUse, object, "pod %s, which the former machine of this name has left, is being deleted%s", pod.Name, until)
	case former:
		d.running.problem(spec.ReasonDisksInUse, named(names.KindPod, pod.Name), "pod %s is that of the former machine of this name; the machine is started when Kubernetes has deleted it", pod.Name)
	default:
		d.wakeAt(d.s.Now.Add(nameAgain))
		d.running.problem(spec.ReasonNameTaken, named(names.KindPod, pod.Name), "pod %s is not the machine's; delete it or rename the machine", pod.Name)
	}
}

// podGoes is what there is to say of a pod from its deletion to its end: one
// text, one write.
const podGoes = "pod %s is being deleted; its guest has the grace period of the pod to shut down, which vmop-cli stop --force cuts short"

// terminating is for a pod that is being deleted. Nothing is done to it: only
// its kubelet knows that the guest does not run any more.
func (d *decision) terminating() {
	pod := d.pod.pod
	d.hurry()
	d.noteLost()
	d.noteDisruption()
	stuck, object := d.stuck(pod)
	if stuck != "" {
		d.running.problem(spec.ReasonPodTerminating, object, "pod %s is being deleted%s", pod.Name, stuck)
		return
	}
	if !d.wanted() || d.s.VM.DeletionTimestamp != nil {
		// Whoever wants the machine to end need not be told that it does: the
		// runner tells that it has begun to.
		object = ""
	}
	if finished(pod) {
		d.running.wait(spec.ReasonPodTerminating, object, "pod %s has ended and is being deleted; there is a new one when it is gone", pod.Name)
		return
	}
	d.running.wait(spec.ReasonPodTerminating, object, podGoes, pod.Name)
}

// noteDisruption records who ends a machine that should run, and why, if that is
// Kubernetes: an eviction, a preemption, a taint. Of the pod nothing tells it later.
func (d *decision) noteDisruption() {
	c := d.pod.disruption()
	if c == nil || !d.wanted() || d.s.VM.DeletionTimestamp != nil || d.stored.LastEnd != nil && d.stored.LastEnd.PodUID == d.pod.pod.UID {
		return
	}
	d.end = &spec.MachineEnd{
		PodUID: d.pod.pod.UID, Cause: c.Reason, Message: c.Message,
		Time: metav1.NewTime(d.s.Now.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeNormal, Reason: camel(c.Reason), Action: "Run", Note: c.Message + "; the machine is started again when its pod is gone and a node takes it",
	})
}

// hurry shortens the grace period of a pod that is being deleted, if the machine's
// has become less or nobody wants to wait for its guest. The runner asks what is
// wanted while it waits for the guest, and is told to end by its kubelet if it does
// not, as that of an earlier version.
func (d *decision) hurry() {
	pod := d.pod.pod
	if has := pod.DeletionGracePeriodSeconds; has != nil && *has > d.grace() && !finished(pod) {
		d.deletePod()
	}
}

// grace is what the guest has to shut down and the runner to end QEMU, in seconds.
func (d *decision) grace() int64 {
	if d.forced() {
		return objects.TerminationReserve
	}
	return d.vm.Spec.ShutdownSeconds() + objects.TerminationReserve
}

// forced reports whether a request asks not to wait for the guest of the pod.
func (d *decision) forced() bool {
	request := d.s.VM.Annotations[names.AnnotationForceStop]
	return request != "" && d.pod.pod != nil && d.pod.pod.Annotations[names.AnnotationForceStop] != request
}

// stuck explains a pod that is being deleted and should be gone; it is empty for
// any other. The object is what is waited for: the pod, or the node that keeps
// it.
func (d *decision) stuck(pod *corev1.Pod) (text, object string) {
	object = named(names.KindPod, pod.Name)
	if late := pod.DeletionTimestamp.Add(stuckAfter); d.s.Now.Before(late) {
		d.wakeAt(late)
		return "", object
	}
	if pod.Spec.NodeName == "" {
		return " and should be gone since " + pod.DeletionTimestamp.UTC().Format(time.RFC3339) + "; see kubectl describe pod " + pod.Name + " for what keeps it", object
	}
	return " and should be gone since " + pod.DeletionTimestamp.UTC().Format(time.RFC3339) +
		"; if node " + pod.Spec.NodeName + " is switched off for certain, run kubectl delete pod " + pod.Name +
		" --force: the guest must not run twice", named(names.KindNode, pod.Spec.NodeName)
}

// untilGone is what follows for a machine that waits for the end of a pod that is
// being deleted, and the object that it waits for.
func (d *decision) untilGone(pod *corev1.Pod) (text, object string) {
	if text, object = d.stuck(pod); text == "" {
		text = "; the machine is started when it is gone"
	}
	return text, object
}

// finished is for a pod that has ended by itself. Its end is written to the
// status first and acted upon when it is seen there.
func (d *decision) finished() {
	pod := d.pod.pod
	noted := d.stored.LastEnd != nil && d.stored.LastEnd.PodUID == pod.UID
	if !noted {
		d.note()
	}
	if !d.wanted() && (noted || d.vm.Spec.RunPolicy == "") {
		d.deleteEnded()
		d.running.rest(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
		return
	}
	switch {
	case !noted:
		d.running.rest(spec.ReasonPodFinished, "pod %s has ended: %s: %s", pod.Name, d.end.Cause, d.end.Message)
	case d.poweredOff():
		d.stop()
	case d.invalid:
		d.running.problem(d.configuration.reason, d.machine(), "pod %s has ended, and the specification is not valid or not allowed; see condition %s",
			pod.Name, spec.ConditionConfigurationApplied)
	case d.delayed():
		// Until then the pod keeps its log.
	default:
		d.deleteEnded()
		d.running.rest(spec.ReasonPodFinished, "pod %s has ended: %s: %s", pod.Name, d.end.Cause, d.end.Message)
	}
}

// note makes the record of an end.
func (d *decision) note() {
	e, former := d.pod.ended(d.s.Now), d.stored.LastEnd
	d.end = &spec.MachineEnd{
		PodUID: d.pod.pod.UID, Cause: e.cause, Message: spec.BoundedMessage(e.message), QEMUStatus: e.qemuStatus,
		Time: metav1.NewTime(e.at.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	final := !d.wanted() || d.vm.Spec.RunPolicy == "" && e.cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops
	// A guest that has reset itself for what waited has nothing to wait for then.
	renewed := e.cause == string(runnerconfig.CauseGuestReset)
	if e.failure || e.ran < shortRun && !final && !renewed {
		d.countFailure(former, e.ran)
	}
	kind, next := corev1.EventTypeNormal, "the machine is started again"
	if d.end.Failures > 0 {
		kind, next = corev1.EventTypeWarning, "the machine is started again at "+d.startAgain().Format(time.RFC3339)+", or as soon as its specification changes"
	}
	if final {
		next = "the machine stays stopped"
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: kind, Reason: camel(e.cause), Action: actionRun, Note: e.message + "; " + next})
}

// countFailure counts an end as a failure, in a row with the end before it if the machine
// has not run steadily in between.
func (d *decision) countFailure(former *spec.MachineEnd, ran time.Duration) {
	d.end.Failures = 1
	if former != nil && former.ObservedGeneration == d.s.VM.Generation && ran < steadyRun {
		d.end.Failures += former.Failures
	}
}

// stops reports whether an end means that the machine should not run any more. The generation shows
// whether the specification was changed since.
func (d *decision) stops(e *spec.MachineEnd) bool {
	return d.vm.Spec.RunPolicy == "" && e != nil && e.Cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops &&
		e.ObservedGeneration == d.s.VM.Generation
}

// poweredOff reports whether there is a pod that has ended because its guest powered
// itself off, for good.
func (d *decision) poweredOff() bool {
	return d.pod.state == podFinished && d.stops(d.end) && d.pod.ended(d.s.Now).cause == string(runnerconfig.CauseGuestShutdown)
}

// noteLost records how the machine has ended, by its runner's word, if its pod does
// not tell so any more. It reports whether it has something to record.
//
// A failure that the runner has told counts as one that its pod tells: whatever takes
// pods that have ended away must not turn a machine that crashes into one that crashes
// without a delay. A pod of which no runner has told an end is none of the machine's
// failures: somebody has deleted it, which restarts the machine at once, or its node has
// died, and elsewhere the machine may well run. What the kubelet ends again and again, an
// eviction or the OOM killer, is told by the pod, which it leaves, and counts.
func (d *decision) noteLost() bool {
	if !d.lostEnd() {
		return false
	}
	e, former := d.stored.RunnerEnd, d.stored.LastEnd
	d.end = &spec.MachineEnd{
		PodUID: d.executedIn(), Cause: e.Cause, Message: e.Message, QEMUStatus: e.QEMUStatus,
		Time: metav1.NewTime(d.s.Now.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	kind := corev1.EventTypeNormal
	if runnerconfig.Cause(e.Cause).Failure() {
		// Nobody tells how long it has run: at most as long as it was allowed to since.
		var ran time.Duration
		if former != nil {
			ran = d.s.Now.Sub(former.Time.Add(reconcile.Backoff(restartDelay, int(former.Failures))))
		}
		d.countFailure(former, ran)
		kind = corev1.EventTypeWarning
	}
	next := "the machine is started again"
	if !d.wanted() {
		next = "the machine stays stopped"
	} else if d.end.Failures > 0 {
		next += " at " + d.startAgain().Format(time.RFC3339) + ", or as soon as its specification changes"
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: kind, Reason: camel(e.Cause), Action: actionRun, Note: e.Message + "; " + next})
	return true
}

// stop writes the only field of a specification that is the operator's to write. It
// is for a pod that has ended and says itself that its guest wanted it. A status,
// whoever wrote it, is no reason for it alone: where the pod was removed in between,
// the machine starts again.
func (d *decision) stop() {
	d.do(reconcile.Patch{
		Kind: names.KindVirtualMachine, Name: d.vm.Name, UID: d.s.VM.UID, ResourceVersion: d.s.VM.ResourceVersion,
		Manager: names.OperatorStatusManager,
		Fields:  map[string]any{"spec": map[string]any{"vm": map[string]any{"state": string(spec.StateStopped)}}},
	}, &d.running)
	d.running.rest(spec.ReasonPodFinished, "the guest powered itself off; spec.vm.state becomes Stopped, as spec.guestShutdownStops asks")
}

func (d *decision) deletePod() bool { return d.deleteVersion("") }

// deleteEnded deletes the pod of the last run, which has ended, after those that have ended
// before it: with it gone, one of them would be taken for the last, and its end be told,
// counted and followed once more.
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

// deleteVersion deletes the pod if it still has a resource version; any if that is
// empty.
func (d *decision) deleteVersion(version string) bool {
	return d.do(reconcile.DeletePod{Name: d.pod.pod.Name, UID: d.pod.pod.UID, ResourceVersion: version, GraceSeconds: d.grace()}, &d.running)
}

// pending is for a pod that has not started. If it would be made otherwise now,
// it is replaced: what keeps it from starting may have been corrected, and no
// guest notices.
func (d *decision) pending() {
	pod := d.pod.pod
	if !d.wanted() {
		d.deletePod()
		d.running.rest(spec.ReasonPodTerminating, podGoes, pod.Name)
		return
	}
	if d.outdated() && d.deleteVersion(pod.ResourceVersion) { // its guest may have started meanwhile
		d.running.wait(spec.ReasonPodTerminating, named(names.KindPod, pod.Name), "pod %s has not started and is replaced, because the machine has changed; there is a new one when it is gone", pod.Name)
		return
	}
	if d.running.ok() {
		d.running = d.pod.hindrance(d.s.PortPods)
		d.awaitsVolume()
	}
}

// awaitsVolume says of a pod that no node takes because a claim of the machine has
// no volume which claim that is. The scheduler does not.
func (d *decision) awaitsVolume() {
	why := d.pod.unscheduled()
	if why == nil || d.devices.ok() || d.devices.reason != spec.ReasonBlockDevicesNotReady ||
		!strings.Contains(strings.ToLower(why.Message), "persistentvolume") && !strings.Contains(strings.ToLower(why.Message), "persistent volume") {
		return
	}
	object, brief := d.running.object, d.running.brief
	d.running = d.devices
	d.running.object, d.running.brief = object, brief
	d.running.message += " (no node takes pod " + d.pod.pod.Name + ": " + strings.TrimRight(strings.TrimSpace(why.Message), ".") + ")"
}

// outdated reports whether a pod that has not started would be made otherwise now.
// One of VM-Operator is left alone.
func (d *decision) outdated() bool {
	digest := d.pod.pod.Annotations[names.AnnotationApplied]
	if digest == "" || d.unmade || d.unsuitable || d.invalid || d.unfit() {
		return false
	}
	now := d.plainPod()
	reconcile.Stamp(now)
	return now.Annotations[names.AnnotationApplied] != digest || len(d.awaiting) > 0 || d.restartAsked() || d.mountsTooMuch()
}

// mountsTooMuch reports whether a pod has a volume for an attachment that is gone, or going:
// it may be what keeps the pod from starting.
func (d *decision) mountsTooMuch() bool {
	return slices.ContainsFunc(objects.AttachedBy(d.pod.pod), func(m objects.Attached) bool {
		return !slices.ContainsFunc(d.s.Attachments, func(a spec.VirtualMachineBlockDeviceAttachment) bool {
			return a.UID == m.For && a.DeletionTimestamp == nil
		})
	})
}

// runs is for a pod whose runner was started.
func (d *decision) runs() {
	pod := d.pod.pod
	switch {
	case !d.wanted():
		d.deletePod()
		d.running.rest(spec.ReasonPodTerminating, podGoes, pod.Name)
	case d.pod.silent():
		d.running.problem(spec.ReasonNodeLost, named(names.KindNode, pod.Spec.NodeName), "node %s does not report about pod %s; repair the node: the machine is not started elsewhere while it may still run there",
			pod.Spec.NodeName, pod.Name)
	case d.pod.container != nil && d.pod.container.State.Terminated != nil:
		// The kubelet tells of the pod a moment after it has told of the container.
		d.running.wait(spec.ReasonPodFinished, named(names.KindPod, pod.Name), "the runner in pod %s has ended, and its node is about to say what becomes of the pod", pod.Name)
	case d.pod.container != nil && d.pod.container.State.Running == nil:
		// Only a pod of VM-Operator is restarted by the kubelet.
		h := d.pod.hindrance(nil)
		if !h.warning {
			h.message = "the runner in pod " + pod.Name + " has ended; the kubelet starts it again"
		}
		d.running.problem(h.reason, h.object, "%s", h.message)
	case d.restarts && (d.executedIn() != "" || d.deletePod()):
		// That it is wanted is written down first: the pod goes then.
		d.running.wait(spec.ReasonPodTerminating, named(names.KindPod, pod.Name), podGoes, pod.Name)
	case d.unheard():
	default:
		d.running.fine(spec.ReasonPodRunning, "pod "+pod.Name+" runs on node "+pod.Spec.NodeName)
	}
}

// annotatePod lets the kubelet look at changed files at once, and brings labels and
// annotations of the machine to its pod: all in one write.
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
			noted := version
			annotations[key] = &noted
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
