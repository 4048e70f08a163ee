package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

func diskRegistration() registration {
	return keptRegistration[spec.VirtualDisk](spec.KindDisk, spec.ResourceDisks, addDisks)
}

func imageRegistration() registration {
	return keptRegistration[spec.VirtualImage](spec.KindImage, spec.ResourceImages, addImages)
}

func clusterImageRegistration() registration {
	return keptRegistration[spec.ClusterVirtualImage](spec.KindClusterImage, spec.ResourceClusterImages, addClusterImages)
}

func addDisks(s *setup) error {
	progress := newImportProgress(s.reader.now)
	k := &disks{reader: s.reader, settings: s.options.Settings, starts: s.starts, progress: progress}
	return addFilled(s, progress, filledKind{
		controller: "disks", name: spec.KindDisk, label: names.LabelDisk, ofClaim: spec.DiskOfClaim, claim: objects.ClaimOfDisk, object: &storedDisk{},
		observe: k.observe, prepare: k.prepare,
	})
}

func addImages(s *setup) error {
	progress := newImportProgress(s.reader.now)
	k := &disks{reader: s.reader, settings: s.options.Settings, starts: s.starts, progress: progress}
	return addFilled(s, progress, filledKind{
		controller: "images", name: spec.KindImage, label: names.LabelImage, ofClaim: spec.ImageOfClaim, claim: objects.ClaimOfImage, object: &storedImage{},
		observe: k.observeImage, prepare: k.prepare,
	})
}

// addClusterImages adds the controller of images of the cluster, which works like that of disks in
// one namespace.
func addClusterImages(s *setup) error {
	progress := newImportProgress(s.reader.now)
	return addFilled(s, progress, filledKind{
		controller: "clusterimages", name: spec.KindClusterImage, label: names.LabelClusterImage, ofClaim: spec.ClusterImageOfClaim, claim: objects.ClaimOfClusterImage, object: &storedClusterImage{},
		namespace: s.options.Settings.ImageNamespace,
		observe:   (&disks{settings: s.options.Settings, progress: progress}).observeClusterImage,
	})
}

// filledKind is a kind whose objects have a claim that is filled: disks and images.
type filledKind struct {
	controller string
	name       string
	// label is on the pod that fills the claim; its value is the object's name.
	label string
	// ofClaim maps a claim's name to the object's, claim the object's to the claim's.
	ofClaim, claim func(string) string
	object         client.Object
	// namespace has the claims of a cluster-scoped kind.
	namespace string
	observe   func(*look) *sight[diskkind.Snapshot]
	// prepare is that of [kind].
	prepare func(context.Context, *sight[diskkind.Snapshot], reconcile.Plan, *subjectMemory) (*prepared, error)
}

func addFilled(s *setup, progress *importProgress, k filledKind) error {
	if err := s.manager.Add(progress); err != nil {
		return err
	}
	ofClaims := func(claims func(client.Object) []string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
			in := o.GetNamespace()
			if k.namespace != "" {
				if in != k.namespace {
					return nil
				}
				in = ""
			}
			var all []string
			for _, c := range claims(o) {
				if name := k.ofClaim(c); name != "" {
					all = append(all, name)
				}
			}
			return requests(in, all)
		})
	}
	_, withClusterImages := s.reader.kinds[spec.KindClusterImage]
	return addKind(s, k.controller, kind[diskkind.Snapshot]{namespace: k.namespace, observe: k.observe, decide: diskkind.Decide, prepare: k.prepare}, controller.Options{MaxConcurrentReconciles: 2}, func(b *builder.Builder) *builder.Builder {
		switch {
		case !withClusterImages:
		case k.namespace != "":
			b.Watches(&storedDisk{}, handler.EnqueueRequestsFromMapFunc(clusterImages(madeOf))).
				Watches(&storedImage{}, handler.EnqueueRequestsFromMapFunc(clusterImages(madeOf))).
				Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(clusterImages(func(o client.Object) []string { return labelled(o, names.LabelClusterImage) })))
		default:
			b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(servedOf(k.name)))
		}
		return b.For(k.object).
			Watches(&corev1.PersistentVolumeClaim{}, ofClaims(func(o client.Object) []string { return []string{o.GetName()} })).
			Watches(&corev1.Pod{}, ofClaims(func(o client.Object) []string {
				pod, is := o.(*corev1.Pod)
				if !is {
					return nil
				}
				claims := objects.PodClaims(pod)
				if name := pod.Labels[k.label]; name != "" {
					claims = append(claims, k.claim(name))
				}
				return claims
			})).
			Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
				// Pods for images of the cluster, which have no namespace, are watched above.
				if name := o.GetLabels()[k.label]; name != "" && k.namespace == "" {
					return requests(o.GetNamespace(), []string{name})
				}
				return nil
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

func (k *disks) observe(w *look) *sight[diskkind.Snapshot] {
	stored, d, unreadable := keptSubject[spec.VirtualDisk](w, spec.KindDisk)
	if stored == nil {
		return nil
	}
	return k.around(w, stored, diskkind.Snapshot{Disk: d, Unreadable: unreadable}, objects.ClaimOfDisk(w.name), d.Spec.DataSource)
}

func (k *disks) observeImage(w *look) *sight[diskkind.Snapshot] {
	stored, i, unreadable := keptSubject[spec.VirtualImage](w, spec.KindImage)
	if stored == nil {
		return nil
	}
	return k.around(w, stored, diskkind.Snapshot{Image: i, Unreadable: unreadable}, objects.ClaimOfImage(w.name), &i.Spec.DataSource)
}

func (k *disks) observeClusterImage(w *look) *sight[diskkind.Snapshot] {
	stored, i, unreadable := keptSubject[spec.ClusterVirtualImage](w, spec.KindClusterImage)
	if stored == nil {
		return nil
	}
	return k.around(w, stored, diskkind.Snapshot{ClusterImage: i, Unreadable: unreadable}, objects.ClaimOfClusterImage(w.name), &i.Spec.DataSource)
}

func (k *disks) around(w *look, stored client.Object, s diskkind.Snapshot, claim string, source *spec.VirtualDiskSource) *sight[diskkind.Snapshot] {
	out := &sight[diskkind.Snapshot]{object: stored, now: w.now()}
	pod := objects.ImportPod(claim)
	s.Settings, s.Now = k.settings, out.now
	s.Claim = one(w, kindClaim, claim, &corev1.PersistentVolumeClaim{})
	s.Pod = one(w, kindPod, pod, &corev1.Pod{})
	if source != nil && source.Type == spec.DiskSourceUpload {
		s.TransferKey = one(w, kindSecret, objects.TransferKey(claim), &corev1.Secret{})
	}
	if s.ClusterImage == nil {
		s.DownloadPod = one(w, kindPod, objects.DownloadName(claim), &corev1.Pod{})
		s.DownloadKey = one(w, kindSecret, objects.DownloadName(claim), &corev1.Secret{})
	}
	if s.Pod != nil && s.Pod.Annotations[names.AnnotationMadeFor] == string(stored.GetUID()) {
		s.Progress = k.progress.of(s.Pod)
	}
	s.Machines = machineLook{w}.having(claim)
	if s.Disk != nil {
		s.Guests = machineLook{w}.guests(s.Machines, claim)
	}
	s.Users = machineLook{w}.podsWith(claim, pod)
	if source != nil && source.ObjectRef != nil {
		k.source(w, source.ObjectRef, pod, &s)
	}
	if s.ClusterImage != nil {
		k.copiers(w, claim, &s)
	}
	s.Failures = w.refusals(s.Now)
	out.snapshot = s
	return out
}

// prepare ensures that no other pod uses a disk when a pod is created that copies it, as for
// machines: one that came and went at the same moment would leave no trace but a copy that is torn.
func (k *disks) prepare(ctx context.Context, o *sight[diskkind.Snapshot], plan reconcile.Plan, memory *subjectMemory) (p *prepared, err error) {
	s := &o.snapshot
	p = &prepared{plan: plan}
	claim := diskkind.CopiesDisk(*s, plan)
	if claim == "" {
		memory.asked = time.Time{}
		return p, nil
	}
	if memory.asked.IsZero() {
		memory.asked = o.now
	}
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p.until, _ = ctx.Deadline()
	t, err := k.starts.turn(ctx, s.Claim.Namespace, observation.Start{
		Machine: objects.ImportPod(s.Claim.Name), Claims: []string{claim}, Refers: true, Asked: memory.asked,
	})
	if t == nil {
		p.waits = err == nil
		return p, err
	}
	p.answered, p.end = t.answered, func(bool) { t.end() }
	memory.asked, memory.turns = time.Time{}, 0
	if s.SourceUsers, p.waits, err = t.users(ctx, k.reader, claim); err != nil || p.waits {
		return p, err
	}
	p.plan = diskkind.Decide(*s)
	return p, nil
}

// source reads the disk or image that another one is a copy of, and which the pod copies. One that
// cannot be decoded counts as missing.
func (k *disks) source(w *look, ref *spec.VirtualDiskObjectRef, pod string, s *diskkind.Snapshot) {
	switch ref.Kind {
	case spec.KindClusterImage:
		k.clusterSource(w, ref.Name, s)
		return
	case spec.KindVolumeSnapshot:
		if s.Claim == nil { // otherwise it is no longer needed
			s.VolumeSnapshot, s.SnapshotAccess = w.volumeSnapshot(ref.Name)
		}
		return
	}
	if ref.Kind == spec.KindImage {
		if stored := one(w, spec.KindImage, ref.Name, &storedImage{}); stored != nil {
			if from, err := stored.decode(); err == nil {
				s.SourceImage = from
			}
		}
		s.SourceClaim = one(w, kindClaim, objects.ClaimOfImage(ref.Name), &corev1.PersistentVolumeClaim{})
		return
	}
	if stored := one(w, spec.KindDisk, ref.Name, &storedDisk{}); stored != nil {
		if from, err := stored.decode(); err == nil {
			s.Source = from
		}
	}
	claim := objects.ClaimOfDisk(ref.Name)
	s.SourceClaim = one(w, kindClaim, claim, &corev1.PersistentVolumeClaim{})
	s.SourceUsers = machineLook{w}.podsWith(claim, pod)
}

// having returns the machines that refer, or may refer, to a claim in their manifest: one that
// cannot be decoded counts.
func (w machineLook) having(claim string) []string {
	var out []string
	for _, value := range []string{claim, anyClaim} {
		var l machineList
		w.list(&l, byClaim, value)
		for i := range l.Items {
			out = append(out, l.Items[i].Name)
		}
	}
	if spec.ImageOfClaim(claim) != "" {
		var l machineList
		w.list(&l, byShare, claim)
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

// guests returns the machines whose runners report the size of the disk in a claim.
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
			continue // unknown
		}
		for _, has := range m.authors.Believed(&vm.Status, false).Disks {
			if has.Name == disk {
				out = append(out, diskkind.Guest{Machine: name, Size: has.Size, Message: has.Message})
			}
		}
	}
	return out
}

// podsWith returns the pods, but for one, that have a claim and have not ended.
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
		if p := w.pod(objects.PodName(name)); p != nil && slices.Contains(objects.PodClaims(p), claim) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// users returns the pods with a claim, but for the one that has the turn: those that the caches show
// now, and those known to the turn. waits: that one is there, and the caches do not show it yet.
func (t *turn) users(ctx context.Context, r *reader, claim string) (users []corev1.Pod, waits bool, err error) {
	w := machineLook{&look{reader: r, ctx: ctx, namespace: t.namespace}}
	users = w.podsWith(claim, t.machine)
	for _, pod := range t.others {
		if slices.Contains(objects.PodClaims(pod), claim) && !slices.ContainsFunc(users, func(u corev1.Pod) bool { return u.UID == pod.UID }) {
			if pod.Name == t.machine {
				return nil, w.err == nil, w.err
			}
			users = append(users, *pod)
		}
	}
	return users, false, w.err
}
