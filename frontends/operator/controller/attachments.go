package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	attachmentkind "github.com/vmop/sdk/vmop/reconcile/attachment"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

func attachmentRegistration() registration {
	return keptRegistration[spec.VirtualMachineBlockDeviceAttachment](spec.KindAttachment, spec.ResourceAttachments, addAttachments)
}

func addAttachments(s *setup) error {
	k := &attachments{reader: s.reader, settings: s.options.Settings, starts: s.starts}
	by := func(ctx context.Context, namespace, index string, values []string) []ctrl.Request {
		var out []string
		for _, v := range values {
			var l storedAttachmentList
			if list(ctx, s.reader.cache, &l, index, namespace, v) != nil {
				continue
			}
			for i := range l.Items {
				out = append(out, l.Items[i].Name)
			}
		}
		return requests(namespace, out)
	}
	of := func(index string, values func(client.Object) []string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
			return by(ctx, o.GetNamespace(), index, values(o))
		})
	}
	own := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		if name := o.GetLabels()[names.LabelAttachment]; name != "" {
			return requests(o.GetNamespace(), []string{name})
		}
		return nil
	})
	named := func(o client.Object) []string { return []string{o.GetName()} }
	return addKind(s, "attachments", k.kind(), controller.Options{MaxConcurrentReconciles: 2}, func(b *builder.Builder) *builder.Builder {
		return b.For(&storedAttachment{}).
			// Attachments of the same disk or machine wait for one another.
			Watches(&storedAttachment{}, of(byClaim, attachedClaim)).
			Watches(&storedAttachment{}, of(byMachine, attachedTo)).
			Watches(&machine{}, of(byMachine, named)).
			Watches(&storedDisk{}, of(byClaim, func(o client.Object) []string { return []string{objects.ClaimOfDisk(o.GetName())} })).
			Watches(&corev1.PersistentVolumeClaim{}, of(byClaim, named)).
			Watches(&corev1.Secret{}, own).
			Watches(&corev1.Pod{}, own).
			Watches(&corev1.Pod{}, of(byMachine, podMachines)).
			Watches(&corev1.Pod{}, of(byClaim, func(o client.Object) []string {
				if pod, is := o.(*corev1.Pod); is {
					return objects.PodClaims(pod)
				}
				return nil
			}))
	})
}

type attachments struct {
	*reader
	settings objects.Settings
	starts   *starts
}

func (k *attachments) kind() kind[attachmentkind.Snapshot] {
	return kind[attachmentkind.Snapshot]{observe: k.observe, decide: attachmentkind.Decide, prepare: k.prepare}
}

func connectedTo(a *spec.VirtualMachineBlockDeviceAttachment) types.UID {
	if c := a.Status.Connection; c != nil {
		return c.PodUID
	}
	return ""
}

func (k *attachments) observe(w *look) *sight[attachmentkind.Snapshot] {
	stored, a, unreadable := keptSubject[spec.VirtualMachineBlockDeviceAttachment](w, spec.KindAttachment)
	if stored == nil {
		return nil
	}
	out := &sight[attachmentkind.Snapshot]{object: stored, now: w.now()}
	s := &out.snapshot
	*s = attachmentkind.Snapshot{Attachment: a, Unreadable: unreadable, Settings: k.settings, Now: out.now}
	name, vm := objects.ExportPod(w.name), a.Spec.VirtualMachineName
	if vm != "" {
		if m := one(w, spec.KindVirtualMachine, vm, &machine{}); m != nil {
			s.Machine, s.MachineUnreadable = operated(m)
		}
		s.Pod = machinekind.PodWith(connectedTo(a), vm, s.Machine, machineLook{w}.ownPods(vm))
		s.Others = attachmentsBy(w, byMachine, vm)
	}
	if claim := a.Spec.BlockDeviceRef.ClaimName(); claim != "" {
		s.Claim = one(w, kindClaim, claim, &corev1.PersistentVolumeClaim{})
		s.Users = machineLook{w}.podsWith(claim, name)
		s.Others = append(s.Others, attachmentsBy(w, byClaim, claim)...)
	}
	s.Others = slices.DeleteFunc(s.Others, func(o spec.VirtualMachineBlockDeviceAttachment) bool { return o.UID == a.UID })
	slices.SortStableFunc(s.Others, func(a, b spec.VirtualMachineBlockDeviceAttachment) int { return cmp.Compare(a.UID, b.UID) })
	s.Others = slices.CompactFunc(s.Others, func(a, b spec.VirtualMachineBlockDeviceAttachment) bool { return a.UID == b.UID })
	if ref := a.Spec.BlockDeviceRef; ref.Kind == spec.AttachedDisk {
		if d := one(w, spec.KindDisk, ref.Name, &storedDisk{}); d != nil {
			var err error
			if s.Disk, err = d.decode(); err != nil {
				s.Disk = &spec.VirtualDisk{ObjectMeta: d.ObjectMeta} // it is in no phase
			}
		}
	}
	if secret := one(w, kindSecret, name, &corev1.Secret{}); secret != nil {
		s.Key = machinekind.CondenseSecret(secret)
	}
	s.Exporter = one(w, kindPod, name, &corev1.Pod{})
	s.Failures = w.refusals(s.Now)
	return out
}

// prepare ensures that no other pod uses the claim when an exporter pod is created for it, as for
// machines, and that no exporter is deleted while its connection is with a pod of the machine that
// the caches do not show.
func (k *attachments) prepare(ctx context.Context, o *sight[attachmentkind.Snapshot], plan reconcile.Plan, memory *subjectMemory) (p *prepared, err error) {
	s := &o.snapshot
	p = &prepared{plan: plan}
	if uid, vm := connectedTo(s.Attachment), s.Attachment.Spec.VirtualMachineName; uid != "" && vm != "" && (s.Pod == nil || s.Pod.UID != uid) {
		name, pod := objects.PodName(vm), &corev1.Pod{}
		if s.Machine != nil {
			name = objects.PodWithUID(s.Machine, uid)
		}
		found, err := get(ctx, k.live, types.NamespacedName{Namespace: s.Attachment.Namespace, Name: name}, pod)
		if err != nil {
			return p, err
		}
		if found && (s.Pod == nil || pod.UID == uid) {
			s.Pod = machinekind.CondensePod(pod)
			p.plan = attachmentkind.Decide(*s)
		}
	}
	if !p.plan.StartsPod() {
		memory.asked = time.Time{}
		return p, nil
	}
	if memory.asked.IsZero() {
		memory.asked = o.now
	}
	claim := s.Attachment.Spec.BlockDeviceRef.ClaimName()
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p.until, _ = ctx.Deadline()
	t, err := k.starts.turn(ctx, s.Attachment.Namespace, observation.Start{
		Machine: objects.ExportPod(s.Attachment.Name), Claims: []string{claim}, Refers: true, Asked: memory.asked,
	})
	if t == nil {
		p.waits = err == nil
		return p, err
	}
	p.answered, p.end = t.answered, func(bool) { t.end() }
	memory.asked, memory.turns = time.Time{}, 0
	if s.Users, p.waits, err = t.users(ctx, k.reader, claim); err != nil || p.waits {
		return p, err
	}
	p.plan = attachmentkind.Decide(*s)
	if again := o.now.Add(recheck); !p.plan.StartsPod() && (p.plan.Wake.IsZero() || again.Before(p.plan.Wake)) {
		p.plan.Wake = again // the obstacle may be a pod that no cache shows
	}
	return p, nil
}
