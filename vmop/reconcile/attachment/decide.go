package attachment

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// again is the minimum age of an exporter that is replaced because the runner could not plug its
// disk.
const again = time.Minute

// nameRetry is how often a foreign pod or Secret is polled that has a name which the attachment
// needs: it may have no label by which it would be watched.
const nameRetry = time.Minute

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot is not
// changed.
func Decide(s Snapshot) reconcile.Plan {
	if s.Attachment == nil {
		return reconcile.Plan{}
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

// GuestHas reports whether a guest has a disk, as its runner reports: also one that it was asked
// to release and has not released yet, and one at any of its places.
func GuestHas(r *spec.MachineAttachment) bool {
	return r != nil && (r.Phase == reportAttached || r.Place > 0)
}

// deleted has the guest release the disk, and then releases the attachment.
func (d *decision) deleted() {
	if !d.held() {
		d.gone = true
		return
	}
	waits := ""
	if m := d.mounted(); m != nil && m.For == d.a.UID && !d.runs() {
		// The pod was created with it: its runner has it, or is about to.
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

// detach takes the disk from the guest and deletes its exporter. Where the machine's pod has the
// volume itself there may still be an exporter, one that failed. detach returns what is waited for,
// which is empty when nothing uses the disk any more.
func (d *decision) detach() string {
	c, direct, waits := d.a.Status.Connection, d.direct(), ""
	switch {
	case direct:
		waits = d.release()
	case d.runs() && c.Key != "":
		waits = d.unplug()
	}
	if waits != "" {
		return waits
	}
	if p := d.exporter(); p != nil {
		d.end(p)
		return "pod " + p.Name + ", which exports the disk, is ending"
	}
	if c != nil && !direct {
		d.next.Connection = nil
		return "it is detached"
	}
	return ""
}

// unplug has the guest release a disk that it has from an exporter.
func (d *decision) unplug() string {
	c := d.a.Status.Connection
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
	return ""
}

// end deletes the exporter, which ends at once if no client is connected.
func (d *decision) end(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		d.do(reconcile.DeletePod{Name: p.Name, UID: p.UID, GraceSeconds: objects.TerminationReserve})
	}
}

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
		// The status was lost, as after a restore from a backup.
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
		// Decided anew when nothing is left of that run.
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "%s", cmp.Or(d.detach(), "it is detached"))
		return
	}
	d.attach()
}

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
		d.plan.WakeAt(d.s.Now.Add(nameRetry))
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
		// The key may be that of an earlier run, which was reported last.
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

func isKey(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

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
		d.plan.WakeAt(d.s.Now.Add(nameRetry))
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

// failed handles a disk that the runner could not plug. The runner does not retry: it gets
// another exporter.
func (d *decision) failed(p *corev1.Pod, r *spec.MachineAttachment) {
	d.cannot(r)
	if at := p.CreationTimestamp.Add(again); d.s.Now.Before(at) {
		d.plan.WakeAt(at)
		return
	}
	d.end(p)
}

// waitsFor returns why a pod does not export; empty if it does. where reports whether the node is
// the cause.
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
