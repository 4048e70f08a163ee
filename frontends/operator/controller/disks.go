package controller

import (
	"cmp"
	"context"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

type (
	storedDisk     = kept[spec.VirtualDisk]
	storedDiskList = keptList[spec.VirtualDisk]
)

func diskRegistration() registration {
	return keptRegistration[spec.VirtualDisk](spec.KindDisk, spec.ResourceDisks, addDisks)
}

// addDisks adds the controller of disks.
func addDisks(s *setup) error {
	k := &disks{settings: s.options.Settings, progress: newImportProgress(s.reader.now)}
	ofClaims := func(claims func(client.Object) []string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
			return requests(o.GetNamespace(), disksOf(claims(o)))
		})
	}
	return addKind(s, "disks", k.kind(), controller.Options{MaxConcurrentReconciles: 2}, func(b *builder.Builder) *builder.Builder {
		return b.For(&storedDisk{}).
			Watches(&corev1.PersistentVolumeClaim{}, ofClaims(func(o client.Object) []string { return []string{o.GetName()} })).
			Watches(&corev1.Pod{}, ofClaims(func(o client.Object) []string {
				pod, is := o.(*corev1.Pod)
				if !is {
					return nil
				}
				claims := objects.PodClaims(pod)
				if disk := pod.Labels[names.LabelDisk]; disk != "" {
					claims = append(claims, objects.ClaimOfDisk(disk))
				}
				return claims
			})).
			Watches(&machine{}, ofClaims(func(o client.Object) []string {
				m, is := o.(*machine)
				if !is {
					return nil
				}
				return m.disks
			}))
	})
}

// disksOf are the names of the disks that claims would be those of.
func disksOf(claims []string) []string {
	var out []string
	for _, c := range claims {
		if d := spec.DiskOfClaim(c); d != "" {
			out = append(out, d)
		}
	}
	return out
}

// disks is what an engine has to know of disks.
type disks struct {
	settings objects.Settings
	progress *importProgress
}

func (k *disks) kind() kind[diskkind.Snapshot] {
	return kind[diskkind.Snapshot]{observe: k.observe, decide: diskkind.Decide}
}

// observe looks at a disk and all that it depends on.
func (k *disks) observe(w *look) *sight[diskkind.Snapshot] {
	stored, d, unreadable := keptSubject[spec.VirtualDisk](w, spec.KindDisk)
	if stored == nil {
		return nil
	}
	out := &sight[diskkind.Snapshot]{object: stored, now: w.now()}
	s := &out.snapshot
	*s = diskkind.Snapshot{Disk: d, Unreadable: unreadable, Settings: k.settings, Now: out.now}
	claim := objects.ClaimOfDisk(w.name)
	s.Claim = one(w, kindClaim, claim, &corev1.PersistentVolumeClaim{})
	s.Pod = one(w, kindPod, objects.ImportPod(w.name), &corev1.Pod{})
	if s.Pod != nil && s.Pod.Annotations[names.AnnotationMadeFor] == string(d.UID) {
		s.Progress = k.progress.of(s.Pod)
	}
	s.Machines = machineLook{w}.having(claim)
	s.Guests = machineLook{w}.guests(s.Machines, claim)
	s.Users = machineLook{w}.podsWith(claim, objects.ImportPod(w.name))
	if source := d.Spec.DataSource; source != nil && source.ObjectRef != nil {
		k.source(w, source.ObjectRef.Name, s)
	}
	s.Failures = w.refusals(s.Now)
	return out
}

// source looks at the disk that another one is a copy of. One that cannot be understood
// is as good as none.
func (k *disks) source(w *look, name string, s *diskkind.Snapshot) {
	if stored := one(w, spec.KindDisk, name, &storedDisk{}); stored != nil {
		if from, err := stored.decode(); err == nil {
			s.Source = from
		}
	}
	claim := objects.ClaimOfDisk(name)
	s.SourceClaim = one(w, kindClaim, claim, &corev1.PersistentVolumeClaim{})
	s.SourceUsers = machineLook{w}.podsWith(claim, objects.ImportPod(w.name))
}

// having are the machines that have a claim in their manifest, or may have it: one that
// cannot be understood counts.
func (w machineLook) having(claim string) []string {
	var out []string
	for _, value := range []string{claim, anyClaim} {
		var l machineList
		w.list(&l, byClaim, value)
		for i := range l.Items {
			out = append(out, l.Items[i].Name)
		}
	}
	for _, name := range objects.ClaimMachines(claim) {
		m := one(w.look, spec.KindVirtualMachine, name, &machine{})
		if m != nil && slices.Contains(m.disks, claim) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// guests are those of machines whose runners tell how large the disk in a claim is for
// them.
func (w machineLook) guests(machines []string, claim string) []diskkind.Guest {
	disk := machineconfig.ClaimDiskName(claim)
	var out []diskkind.Guest
	for _, name := range machines {
		m := one(w.look, spec.KindVirtualMachine, name, &machine{})
		if m == nil {
			continue
		}
		vm, err := m.decode()
		if err != nil {
			continue // nobody knows
		}
		for _, has := range m.authors.Believed(&vm.Status, false).Disks {
			if has.Name == disk {
				out = append(out, diskkind.Guest{Machine: name, Size: has.Size, Message: has.Message})
			}
		}
	}
	return out
}

// podsWith are the pods that have a claim and have not ended, but for one.
func (w machineLook) podsWith(claim, but string) []corev1.Pod {
	var l corev1.PodList
	w.list(&l, byClaim, claim)
	var out []corev1.Pod
	for i := range l.Items {
		if p := &l.Items[i]; p.Name != but && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out = append(out, *p)
		}
	}
	for _, name := range objects.ClaimMachines(claim) {
		if p := w.pod(name); p != nil && slices.Contains(objects.PodClaims(p), claim) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
