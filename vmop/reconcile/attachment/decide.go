package attachment

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is all that a decision about one attachment depends on. A pointer that is nil
// means known to be absent. Nothing in it is changed.
type Snapshot struct {
	// Attachment is the attachment as it is stored.
	Attachment *spec.VirtualMachineBlockDeviceAttachment
	// Unreadable says why Attachment has nothing but its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Machine is the machine that it names, with a status that is to be believed, and
	// MachineUnreadable why there is none although one is stored. Pod is the machine's pod:
	// while there is a connection with one that has not ended that one, whichever is the
	// active one by now (package machine has PodWith).
	Machine           *spec.VirtualMachine
	MachineUnreadable string
	Pod               *corev1.Pod
	// Disk is the disk that it names, if it names one, and Claim the volume claim.
	Disk  *spec.VirtualDisk
	Claim *corev1.PersistentVolumeClaim
	// Key and Exporter are the Secret and the pod that have the name [objects.ExportPod],
	// whoever made them.
	Key      *corev1.Secret
	Exporter *corev1.Pod
	// Users are further pods that have the claim and have not ended.
	Users []corev1.Pod
	// Others are further attachments of the claim, or of the machine.
	Others []spec.VirtualMachineBlockDeviceAttachment
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// MaxAttached is how many disks can be attached to a running machine: as many as it has
// places for what is plugged.
const MaxAttached = limits.MaxAttached

// again is how old an exporter is at least that gives way to another one because the
// runner could not plug what it exports.
const again = time.Minute

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot
// is not changed.
func Decide(s Snapshot) reconcile.Plan {
	if s.Attachment == nil {
		return reconcile.Plan{} // there is nothing to decide about
	}
	d := &decision{s: &s, a: s.Attachment, next: *s.Attachment.Status.DeepCopy()}
	d.next.ObservedGeneration = d.a.Generation
	if d.a.DeletionTimestamp != nil {
		d.deleted()
	} else {
		d.alive()
	}
	if d.next.Phase != spec.AttachmentAttached {
		d.next.VirtualMachineName = ""
	}
	if !equality.Semantic.DeepEqual(d.next, d.a.Status) && !d.gone {
		d.plan.Statuses = []reconcile.StatusApply{reconcile.StatusOf(names.KindAttachment, d.a, names.OperatorStatusManager, d.next)}
	}
	return d.plan
}

// decision is the state of one call of Decide.
type decision struct {
	s *Snapshot
	a *spec.VirtualMachineBlockDeviceAttachment
	// next is the status that the attachment gets.
	next spec.VirtualMachineBlockDeviceAttachmentStatus
	plan reconcile.Plan
	// gone: the attachment is let go, and has no status any more.
	gone bool
}

// do adds an action to the plan. If the API server has refused it a moment ago, it says
// so in the status instead, and reports false.
func (d *decision) do(a reconcile.Action) bool {
	f := d.plan.Add(d.s.Failures, d.s.Now, a)
	if f == nil {
		return true
	}
	phase := spec.AttachmentPending
	if d.a.DeletionTimestamp != nil {
		phase = spec.AttachmentTerminating
	}
	reason, text := f.Told("attachment", d.a.Namespace)
	d.not(phase, reason, "%s", text)
	return false
}

func (d *decision) condition(kind string, status metav1.ConditionStatus, reason, format string, args ...any) {
	d.next.Conditions = spec.WithCondition(d.next.Conditions, spec.Condition{
		Type: kind, Status: status, Reason: reason, Message: spec.BoundedMessage(fmt.Sprintf(format, args...)),
		ObservedGeneration: d.a.Generation, LastTransitionTime: metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)),
	})
}

// not says that the guest has not got the disk, and why.
func (d *decision) not(phase spec.AttachmentPhase, reason, format string, args ...any) {
	d.next.Phase = phase
	d.condition(conditions.Attached, metav1.ConditionFalse, reason, format, args...)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (d *decision) held() bool { return slices.Contains(d.a.Finalizers, names.FinalizerAttachment) }

// mine reports whether an object was made for this very attachment.
func (d *decision) mine(o metav1.Object) bool {
	return d.a.UID != "" && o.GetAnnotations()[names.AnnotationMadeFor] == string(d.a.UID)
}

// exporter is the attachment's own pod, nil if there is none.
func (d *decision) exporter() *corev1.Pod {
	if p := d.s.Exporter; p != nil && d.mine(p) {
		return p
	}
	return nil
}

// runs reports whether the run of the machine that the disk was attached to may go on.
func (d *decision) runs() bool {
	p, c := d.s.Pod, d.a.Status.Connection
	return p != nil && c != nil && p.UID == c.PodUID && !finished(p)
}

// report is what the runner says of the attachment, in the run that its connection is
// for; nil if it says nothing.
func (d *decision) report() *spec.MachineAttachment {
	c, vm := d.a.Status.Connection, d.s.Machine
	switch {
	case c == nil || vm == nil:
		return nil
	case c.Direct && !d.runs(), !c.Direct && (c.Key == "" || vm.Status.AttachmentKey != c.Key):
		// Of a pod that has the volume nobody needs a key: the pod before it had ended, and
		// what its runner had reported was taken back, when it was made.
		return nil
	}
	for i := range vm.Status.Attachments {
		if r := &vm.Status.Attachments[i]; types.UID(r.UID) == d.a.UID {
			return r
		}
	}
	return nil
}

// The phases of the runner's report, as vmop/live has them.
const (
	reportAttached = "Attached"
	reportDetached = "Detached"
	reportFailed   = "Failed"
)

// GuestHas reports whether a guest has a disk, by what its runner reports: it has one that
// it was asked to release until it has done so, and has it at one of its places.
func GuestHas(r *spec.MachineAttachment) bool {
	return r != nil && (r.Phase == reportAttached || r.Place > 0)
}

// deleted has the guest release the disk, and lets the attachment go then.
func (d *decision) deleted() {
	if !d.held() {
		d.gone = true
		return
	}
	waits := ""
	if m := d.mounted(); m != nil && m.For == d.a.UID && !d.runs() {
		// The pod was made with it: its runner has it, or is about to.
		d.next.Connection = &spec.AttachmentConnection{PodUID: d.s.Pod.UID, Direct: true, Detach: true}
		waits = "machine " + d.a.Spec.VirtualMachineName + " is told to release the disk"
	} else {
		waits = d.detach()
	}
	if waits != "" {
		d.next.Phase = spec.AttachmentTerminating
		d.condition(conditions.AttachmentTerminating, metav1.ConditionTrue, conditions.ReasonDetachPending, "%s", waits)
		return
	}
	if d.do(reconcile.SetFinalizers{
		Kind: names.KindAttachment, Name: d.a.Name, UID: d.a.UID, ResourceVersion: d.a.ResourceVersion,
		Finalizers: slices.DeleteFunc(slices.Clone(d.a.Finalizers), func(f string) bool { return f == names.FinalizerAttachment }),
	}) {
		d.gone = true
	}
}

// detach takes the disk from the guest and ends its exporter. It returns what is waited
// for, which is nothing when neither of them has anything of the disk any more.
func (d *decision) detach() string {
	c := d.a.Status.Connection
	if d.direct() {
		return d.release()
	}
	if d.runs() && c.Key != "" {
		if !c.Detach {
			next := *c
			next.Detach = true
			d.next.Connection = &next
		}
		r, vm := d.report(), d.s.Machine
		switch {
		case vm != nil && isKey(vm.Status.AttachmentKey) && vm.Status.AttachmentKey != c.Key:
			// The key was that of an earlier run: this one was never served.
		case r == nil:
			return "machine " + d.a.Spec.VirtualMachineName + " is told to release the disk"
		case !c.Detach || r.Phase != reportDetached:
			return "machine " + d.a.Spec.VirtualMachineName + " has the disk yet" + because(r.Message)
		}
	}
	if p := d.exporter(); p != nil {
		d.end(p)
		return "pod " + p.Name + ", which exports the disk, is ending"
	}
	if c != nil {
		d.next.Connection = nil
		return "it is detached"
	}
	return ""
}

func because(message string) string {
	if message = strings.TrimSpace(message); message != "" {
		return ": " + message
	}
	return ""
}

// end deletes the exporter, which ends at once when nobody is connected.
func (d *decision) end(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		d.do(reconcile.DeletePod{Name: p.Name, UID: p.UID, GraceSeconds: objects.TerminationReserve})
	}
}

// refusal is why a disk is not attached.
type refusal struct {
	phase           spec.AttachmentPhase
	reason, message string
}

func no(phase spec.AttachmentPhase, reason, format string, args ...any) *refusal {
	return &refusal{phase, reason, fmt.Sprintf(format, args...)}
}

// alive attaches the disk.
func (d *decision) alive() {
	d.next.Conditions = slices.DeleteFunc(slices.Clone(d.next.Conditions), func(c spec.Condition) bool { return c.Type == conditions.AttachmentTerminating })
	if d.s.Unreadable != "" {
		d.not(spec.AttachmentFailed, conditions.ReasonInvalidSpecification, "%s; delete it", d.s.Unreadable)
		return
	}
	if errs := spec.ValidateAttachment(d.a); len(errs) > 0 {
		d.not(spec.AttachmentFailed, conditions.ReasonInvalidSpecification, "%v", errs.ToAggregate())
		return
	}
	r := d.refused()
	c := d.a.Status.Connection
	switch {
	case c == nil && d.exporter() != nil:
		// The status was lost, as a backup loses it.
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "pod %s of an earlier attachment is ending", d.s.Exporter.Name)
		d.end(d.s.Exporter)
		return
	case c == nil && r != nil:
		d.not(r.phase, r.reason, "%s", r.message)
		return
	case d.direct() && (c.Detach || d.yields() != nil):
		d.regain(r)
		return
	case c != nil && (!d.runs() || c.Detach || d.yields() != nil):
		// What is to become of it is decided when nothing is left of that run.
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "%s", cmp.Or(d.detach(), "it is detached"))
		return
	}
	d.attach()
}

// refused says why the disk is not to be attached, in the order in which that is looked
// at; nil if it may. It also sets the conditions that say so each for itself.
func (d *decision) refused() *refusal {
	device, vm, room := d.device(), d.machine(), d.capacity()
	if device != nil {
		d.condition(conditions.BlockDeviceReady, metav1.ConditionFalse, conditions.ReasonBlockDeviceNotReady, "%s", device.message)
	} else {
		d.condition(conditions.BlockDeviceReady, metav1.ConditionTrue, conditions.ReasonBlockDeviceReady, "it can be attached")
	}
	if vm != nil {
		d.condition(conditions.VirtualMachineReady, metav1.ConditionFalse, conditions.ReasonVirtualMachineNotReady, "%s", vm.message)
	} else {
		d.condition(conditions.VirtualMachineReady, metav1.ConditionTrue, conditions.ReasonVirtualMachineReady, "the machine runs")
	}
	if room != nil {
		d.condition(conditions.AttachmentCapacity, metav1.ConditionFalse, conditions.ReasonCapacityReached, "%s", room.message)
	} else {
		d.condition(conditions.AttachmentCapacity, metav1.ConditionTrue, conditions.ReasonCapacityAvailable, "the machine has a place for the disk")
	}
	for _, r := range []*refusal{d.yields(), device, vm, d.mentioned(), room, d.inUse()} {
		if r != nil {
			return r
		}
	}
	return nil
}

func (d *decision) claim() string { return d.a.Spec.BlockDeviceRef.ClaimName() }

// yields is about other attachments of the same disk: the one that is attached has it, or
// else one whose machine's pod has the volume, or else the oldest.
func (d *decision) yields() *refusal {
	for i := range d.s.Others {
		o := &d.s.Others[i]
		if o.UID == d.a.UID || o.Spec.BlockDeviceRef.ClaimName() != d.claim() || o.DeletionTimestamp != nil && o.Status.Connection == nil {
			continue
		}
		mine, theirs := rank(d.a), rank(o)
		if d.mounted() != nil {
			mine = max(mine, rankMounted)
			if o.Spec.VirtualMachineName == d.a.Spec.VirtualMachineName {
				theirs = max(theirs, rankMounted)
			}
		}
		if theirs > mine || theirs == mine && older(o, d.a) {
			return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict,
				"attachment %s has the disk, for machine %s; delete one of them", o.Name, o.Spec.VirtualMachineName)
		}
	}
	return nil
}

func older(a, b *spec.VirtualMachineBlockDeviceAttachment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) < 0
}

// device says what is missing of the disk.
func (d *decision) device() *refusal {
	wait := func(format string, args ...any) *refusal {
		return no(spec.AttachmentPending, conditions.ReasonNotAttached, format, args...)
	}
	ref, c := &d.a.Spec.BlockDeviceRef, d.s.Claim
	if ref.Kind == spec.AttachedDisk {
		switch disk := d.s.Disk; {
		case disk == nil:
			return wait("there is no disk %s (kubectl get vd)", ref.Name)
		case disk.DeletionTimestamp != nil:
			return wait("disk %s is being deleted", ref.Name)
		case !disk.Status.Phase.Usable():
			return wait("disk %s is %s (kubectl describe vd %[1]s)", ref.Name, cmp.Or(disk.Status.Phase, spec.DiskPending))
		}
	}
	if c == nil {
		return wait("there is no claim %s", d.claim())
	}
	switch imageKind, image := objects.ImageOf(c); {
	case c.DeletionTimestamp != nil:
		return wait("claim %s is being deleted", c.Name)
	case imageKind != "":
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is that of %s %s, which no machine writes to: make a VirtualDisk of it, and attach that", c.Name, imageKind, image)
	case c.Status.Phase == corev1.ClaimLost:
		return wait("claim %s has lost its volume", c.Name)
	}
	return nil
}

// machine says why the machine cannot be given anything.
func (d *decision) machine() *refusal {
	wait := func(format string, args ...any) *refusal {
		return no(spec.AttachmentPending, conditions.ReasonNotAttached, format, args...)
	}
	name, vm, p := d.a.Spec.VirtualMachineName, d.s.Machine, d.s.Pod
	switch {
	case vm == nil && d.s.MachineUnreadable != "":
		return wait("%s", d.s.MachineUnreadable)
	case vm == nil:
		return wait("there is no machine %s", name)
	case vm.DeletionTimestamp != nil:
		return wait("machine %s is being deleted", name)
	case p == nil || finished(p) || vm.Status.Phase != spec.PhaseRunning:
		return wait("machine %s is %s; the disk is attached when it runs", name, cmp.Or(vm.Status.Phase, spec.PhasePending))
	case p.DeletionTimestamp != nil:
		return wait("machine %s is being stopped; the disk is attached when it runs again", name)
	case p.Spec.NodeName == "" || p.UID == "":
		return wait("machine %s has no node yet", name)
	}
	return nil
}

// mentioned is about a disk that the machine has in its manifest.
func (d *decision) mentioned() *refusal {
	if d.s.Machine == nil || objects.OwnsAttachment(d.s.Machine, d.a) {
		return nil // of the latter it has it by this until its next start
	}
	if slices.Contains(objects.ClaimNames(d.s.Machine), d.claim()) || slices.Contains(objects.SharedClaims(d.s.Machine), d.claim()) {
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is one of machine %s by its manifest already", d.claim(), d.s.Machine.Name)
	}
	return nil
}

// capacity is about the places that the machine has.
func (d *decision) capacity() *refusal {
	n := 0
	for i := range d.s.Others {
		if o := &d.s.Others[i]; o.UID != d.a.UID && o.Spec.VirtualMachineName == d.a.Spec.VirtualMachineName && o.Status.Connection != nil {
			n++
		}
	}
	if n >= MaxAttached {
		return no(spec.AttachmentPending, conditions.ReasonCapacityReached, "machine %s has %d disks attached, which is as many as can be: detach one of them", d.a.Spec.VirtualMachineName, n)
	}
	return nil
}

// inUse is about pods that have the claim.
func (d *decision) inUse() *refusal {
	var all []string
	for i := range d.s.Users {
		p := &d.s.Users[i]
		switch c := d.a.Status.Connection; {
		case finished(p):
		case d.mounted() != nil && p.UID == d.s.Pod.UID && (c == nil || c.Direct):
			// It has it for this.
		case slices.ContainsFunc(objects.AttachedBy(p), func(m objects.Attached) bool { return m.Claim == d.claim() }):
			return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict,
				"pod %s was made with claim %s, which was attached to its machine then, and has it until it ends: restart machine %[1]s to free it", p.Name, d.claim())
		default:
			all = append(all, p.Name)
		}
	}
	if slices.Sort(all); len(all) > 0 {
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is used by pod %s; it is attached when nobody has it any more", d.claim(), strings.Join(all[:min(len(all), 5)], ", "))
	}
	return nil
}

// attach takes the next step on the way to a disk that is attached.
func (d *decision) attach() {
	c, name := d.a.Status.Connection, objects.ExportPod(d.a.Name)
	step := func(format string, args ...any) {
		d.not(spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, format, args...)
	}
	fingerprint := ""
	if d.s.Key != nil {
		fingerprint = objects.ExportFingerprint(d.s.Key)
	}
	switch {
	case !d.held():
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "it is about to be attached")
		d.do(reconcile.SetFinalizers{
			Kind: names.KindAttachment, Name: d.a.Name, UID: d.a.UID, ResourceVersion: d.a.ResourceVersion,
			Finalizers: append(slices.Clone(d.a.Finalizers), names.FinalizerAttachment),
		})
		return
	case d.direct():
		d.directly()
		return
	case c == nil && d.mounted() != nil:
		d.connect()
		return
	case objects.IsFormerRunner(objects.ImporterImage(&d.s.Settings)):
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "the operator has no image of a runner of ours: the administrator names one by its option runnerImage")
		return
	case d.s.Key == nil:
		secret, certificate := objects.ExportKey(d.a, d.s.Now)
		of := reconcile.Certificate(certificate)
		if d.do(reconcile.Create{Object: secret, Certificate: &of}) {
			d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "Secret %s is being made", name)
		}
		return
	case !d.mine(d.s.Key) || fingerprint == "":
		d.not(spec.AttachmentFailed, conditions.ReasonNameTaken, "Secret %s is not this attachment's: delete it, or name the attachment otherwise", name)
		return
	case c == nil:
		d.next.Connection = &spec.AttachmentConnection{PodUID: d.s.Pod.UID}
		step("machine %s is told", d.a.Spec.VirtualMachineName)
		return
	}
	if vm := d.s.Machine; vm == nil || !isKey(vm.Status.AttachmentKey) {
		if c.Key == "" || vm == nil {
			step("machine %s is told, and has not answered yet; a runner of an earlier version does not: then restart the machine", d.a.Spec.VirtualMachineName)
			return
		}
	} else if key := vm.Status.AttachmentKey; key != c.Key {
		// The key may have been that of an earlier run, which was reported last.
		step("machine %s has told its key", vm.Name)
		if p := d.exporter(); p != nil {
			d.end(p)
			return
		}
		d.next.Connection = &spec.AttachmentConnection{PodUID: c.PodUID, Key: key}
		return
	}
	d.export(c, fingerprint)
}

// isKey reports whether a text may be the fingerprint of a key.
func isKey(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// export sees to the exporter, and to what the runner makes of it.
func (d *decision) export(c *spec.AttachmentConnection, fingerprint string) {
	p, name, r := d.s.Exporter, objects.ExportPod(d.a.Name), d.report()
	step := func(format string, args ...any) {
		if r != nil && r.Phase == reportAttached {
			// The guest has it, and waits.
			d.attached(fmt.Sprintf(format, args...))
			return
		}
		d.not(spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, format, args...)
	}
	switch {
	case p == nil:
		if other := d.inUse(); other != nil {
			d.not(other.phase, other.reason, "%s", other.message)
			return
		}
		mode := corev1.PersistentVolumeFilesystem
		if d.s.Claim == nil || d.s.Claim.DeletionTimestamp != nil || d.s.Pod.Spec.NodeName == "" {
			step("%s", cmp.Or(d.deviceText(), "the machine has no node"))
			return
		}
		if m := d.s.Claim.Spec.VolumeMode; m != nil {
			mode = *m
		}
		if d.do(reconcile.Create{Object: objects.ExportJob(d.a, d.s.Machine, d.s.Pod.Spec.NodeName, mode, d.s.Settings)}) {
			step("pod %s, which exports the disk, is being made", name)
		}
		return
	case !d.mine(p):
		d.not(spec.AttachmentFailed, conditions.ReasonNameTaken, "there is a pod %s that is not this attachment's: delete it, or name the attachment otherwise", name)
		return
	case p.DeletionTimestamp != nil:
		step("pod %s, which exports the disk, is ending; another one is made when it is gone", name)
		return
	case finished(p) || p.Annotations[names.AnnotationExportsTo] != objects.ExportsTo(d.a):
		step("pod %s, which exports the disk, is replaced", name)
		d.end(p)
		return
	}
	if waits, where := waitsFor(p); waits != "" {
		switch {
		case where && (r == nil || r.Phase != reportAttached):
			d.not(spec.AttachmentFailed, conditions.ReasonDeviceNotAvailableOnNode, "pod %s, which exports the disk, cannot be on node %s: %s", name, d.s.Pod.Spec.NodeName, waits)
		default:
			step("pod %s, which exports the disk, does not run: %s", name, waits)
		}
		return
	}
	next := *c
	next.Address, next.Fingerprint = net.JoinHostPort(p.Status.PodIP, objects.ExportPort()), fingerprint
	if next != *c {
		d.next.Connection = &next
		step("machine %s is told where the disk is", d.a.Spec.VirtualMachineName)
		return
	}
	switch {
	case r == nil:
		step("machine %s is told where the disk is", d.a.Spec.VirtualMachineName)
	case r.Phase == reportAttached:
		d.attached("")
	case r.Phase == reportFailed:
		d.failed(p, r)
	default:
		step("machine %s attaches it%s", d.a.Spec.VirtualMachineName, because(r.Message))
	}
}

func (d *decision) deviceText() string {
	if r := d.device(); r != nil {
		return r.message
	}
	return ""
}

// attached says that the guest has the disk, and what is wrong with its exporter.
func (d *decision) attached(but string) {
	if d.a.Status.Phase != spec.AttachmentAttached {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: conditions.ReasonAttached, Action: "Attach", Note: "machine " + d.a.Spec.VirtualMachineName + " has the disk",
		})
	}
	d.next.Phase, d.next.VirtualMachineName = spec.AttachmentAttached, d.a.Spec.VirtualMachineName
	if r := d.report(); r != nil && r.Place >= 1 && r.Place <= MaxAttached {
		d.next.Place = r.Place
	}
	if but != "" {
		d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk, and waits for it: %s", but)
		return
	}
	if d.direct() {
		d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk, from the volume of its own pod")
		return
	}
	d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk")
}

// failed is for a disk that the runner could not plug. It does not try again by itself:
// it is given another exporter.
func (d *decision) failed(p *corev1.Pod, r *spec.MachineAttachment) {
	d.cannot(r)
	if at := p.CreationTimestamp.Add(again); d.s.Now.Before(at) {
		d.plan.WakeAt(at)
		return
	}
	d.end(p)
}

// cannot says that the runner could not plug it.
func (d *decision) cannot(r *spec.MachineAttachment) {
	if d.a.Status.Phase != spec.AttachmentFailed {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: conditions.ReasonAttachmentFailed, Action: "Attach", Note: "machine " + d.a.Spec.VirtualMachineName + " cannot attach the disk" + because(r.Message),
		})
	}
	d.not(spec.AttachmentFailed, conditions.ReasonAttachmentFailed, "machine %s cannot attach it%s", d.a.Spec.VirtualMachineName, because(r.Message))
}

// waitsFor says why a pod does not export anything; empty if it does. where says that this
// is because of the node.
func waitsFor(p *corev1.Pod) (waits string, where bool) {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return cmp.Or(c.Message, c.Reason, "it is not scheduled"), strings.Contains(c.Message, "volume")
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		if c.State.Running != nil {
			continue
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil {
				return cmp.Or(strings.TrimSpace(t.Message), fmt.Sprintf("it ended with code %d", t.ExitCode)), false
			}
		}
		if w := c.State.Waiting; w != nil {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": "), false
		}
	}
	if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" {
		return "it has not started", false
	}
	return "", false
}
