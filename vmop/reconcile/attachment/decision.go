package attachment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type decision struct {
	s    *Snapshot
	a    *spec.VirtualMachineBlockDeviceAttachment
	next spec.VirtualMachineBlockDeviceAttachmentStatus
	plan reconcile.Plan
	// gone: the attachment is released, and has no status any more.
	gone bool
}

// do adds an action to the plan. If the API server has just refused it, do reports that in the
// status instead and returns false.
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

// not reports that the guest does not have the disk, and why.
func (d *decision) not(phase spec.AttachmentPhase, reason, format string, args ...any) {
	d.next.Phase = phase
	d.condition(conditions.Attached, metav1.ConditionFalse, reason, format, args...)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (d *decision) held() bool { return slices.Contains(d.a.Finalizers, names.FinalizerAttachment) }

func (d *decision) mine(o metav1.Object) bool {
	return d.a.UID != "" && o.GetAnnotations()[names.AnnotationMadeFor] == string(d.a.UID)
}

// runs reports whether the run of the machine that the disk was attached to may go on.
func (d *decision) runs() bool {
	p, c := d.s.Pod, d.a.Status.Connection
	return p != nil && c != nil && p.UID == c.PodUID && !finished(p)
}

// report returns the runner's report about the attachment, in the run of its connection, or nil.
func (d *decision) report() *spec.MachineAttachment {
	c, vm := d.a.Status.Connection, d.s.Machine
	switch {
	case c == nil || vm == nil:
		return nil
	case c.Direct && !d.runs(), !c.Direct && (c.Key == "" || vm.Status.AttachmentKey != c.Key):
		// A pod with the volume needs no key: when it was created, the former pod had ended, and
		// its runner's report had been withdrawn.
		return nil
	}
	for i := range vm.Status.Attachments {
		if r := &vm.Status.Attachments[i]; types.UID(r.UID) == d.a.UID {
			return r
		}
	}
	return nil
}

// The phases of the runner's report, as in vmop/live.
const (
	reportAttached = "Attached"
	reportDetached = "Detached"
	reportFailed   = "Failed"
)

func because(message string) string {
	if message = strings.TrimSpace(message); message != "" {
		return ": " + message
	}
	return ""
}

type refusal struct {
	phase           spec.AttachmentPhase
	reason, message string
}

func no(phase spec.AttachmentPhase, reason, format string, args ...any) *refusal {
	return &refusal{phase, reason, fmt.Sprintf(format, args...)}
}

func (d *decision) claim() string { return d.a.Spec.BlockDeviceRef.ClaimName() }

func (d *decision) exporter() *corev1.Pod {
	if p := d.s.Exporter; p != nil && d.mine(p) {
		return p
	}
	return nil
}

// direct reports whether the present run of the machine has the disk from its own pod.
func (d *decision) direct() bool {
	c := d.a.Status.Connection
	return d.runs() && c.Direct
}
