package disk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is all that a decision about one disk depends on. A pointer that is nil means
// known to be absent. Nothing in it is changed.
type Snapshot struct {
	// Disk is the disk as it is stored, nil if it is an image.
	Disk *spec.VirtualDisk
	// Image is the image as it is stored, nil if it is a disk.
	Image *spec.VirtualImage
	// ClusterImage is the image of the cluster as it is stored, nil if it is none. Its
	// claim and its pods are in the namespace that the settings say.
	ClusterImage *spec.ClusterVirtualImage
	// Unreadable says why that has nothing but its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Claim is the claim that has the name [objects.ClaimOfDisk], or of an image
	// [objects.ClaimOfImage], and Pod the pod that has the name [objects.ImportPod],
	// whoever made them.
	Claim *corev1.PersistentVolumeClaim
	Pod   *corev1.Pod
	// Machines are the names of the machines that have the disk, or its claim, in their
	// manifest, or may have it: one that cannot be understood counts.
	Machines []string
	// Guests are the machines among them whose runner tells how large the disk is for its
	// guest.
	Guests []Guest
	// Users are further pods that have the claim and have not ended.
	Users []corev1.Pod
	// Source is the disk that this one is a copy of, or SourceImage the image, and
	// SourceClaim the claim of its name; nil if there is none, or it is no copy of one.
	// SourceUsers are pods that have that claim and have not ended, but for Pod; of an
	// image nobody asks.
	Source      *spec.VirtualDisk
	SourceImage *spec.VirtualImage
	SourceClaim *corev1.PersistentVolumeClaim
	SourceUsers []corev1.Pod
	// SourceClusterImage is the image of the cluster that it is a copy of, whose claim
	// SourceClaim is then; NoClusterImages says that the operator looks after none. Server
	// is the pod that serves it to this disk, and ServerKey the Secret with the key of
	// that, without the key itself; Key is the same of the disk's own.
	SourceClusterImage *spec.ClusterVirtualImage
	NoClusterImages    bool
	Server             *corev1.Pod
	ServerKey          *corev1.Secret
	Key                *corev1.Secret
	// Copiers are those who want to be served, if it is an image of the cluster, and
	// Servers the pods that serve it.
	Copiers []objects.Copier
	Servers []corev1.Pod
	// TransferKey is the Secret that has the name [objects.TransferKey], whoever made it.
	TransferKey *corev1.Secret
	// DownloadPod and DownloadKey are the pod and the Secret that have the name
	// [objects.DownloadName], whoever made them.
	DownloadPod *corev1.Pod
	DownloadKey *corev1.Secret
	// Progress is how far Pod is, as it said a moment ago; nil if nobody knows.
	Progress *runnerconfig.ImportProgress
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// Guest is how large a disk is for the guest of a machine.
type Guest struct {
	// Machine is its name.
	Machine string
	// Size is what the guest sees, and Message why that is not more.
	Size    resource.Quantity
	Message string
}

const (
	// importDelay is the pause after an attempt to fill a disk that has failed. It
	// doubles, up to five minutes.
	importDelay = 10 * time.Second
	// progressDelay is how often a disk that is being made is looked at, for how far it
	// is.
	progressDelay = 10 * time.Second
	// sourceDelay is how often a disk is looked at that others are a copy of.
	sourceDelay = 10 * time.Second
	// importGrace is what a pod that is not needed any more has to end in, in seconds.
	importGrace = 5
)

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot
// is not changed. Without a disk there is nothing to do.
func Decide(s Snapshot) reconcile.Plan {
	subject := subjectOf(&s)
	if subject.object == nil {
		return reconcile.Plan{}
	}
	d := &decision{s: &s, subject: subject, next: *subject.disk.Status.DeepCopy()}
	d.next.ObservedGeneration = d.disk.Generation
	d.attachments()
	if d.disk.DeletionTimestamp != nil {
		d.deleted()
	} else {
		d.alive()
		d.download()
	}
	d.serve()
	if next, changed := d.status(); changed && !d.gone {
		d.plan.Statuses = []reconcile.StatusApply{reconcile.StatusOf(d.kind, d.object, names.OperatorStatusManager, next)}
	}
	return d.plan
}

// decision is the state of one call of Decide.
type decision struct {
	s *Snapshot
	subject
	// next is the status that the disk gets.
	next spec.VirtualDiskStatus
	plan reconcile.Plan
	// gone: the disk is let go, and has no status any more.
	gone bool
}

// do adds an action to the plan. If the API server has refused it a moment ago, it says
// so in the status instead, and reports false.
func (d *decision) do(a reconcile.Action) bool {
	f := d.plan.Add(d.s.Failures, d.s.Now, a)
	if f == nil {
		return true
	}
	phase := spec.DiskPending
	if f.NamespaceGoes {
		phase = d.next.Phase
	}
	reason, text := f.Told(d.noun, cmp.Or(d.disk.Namespace, d.s.Settings.ImageNamespace))
	d.say(phase, metav1.ConditionFalse, reason, "%s", text)
	return false
}

// condition sets a condition.
func (d *decision) condition(kind string, status metav1.ConditionStatus, reason, format string, args ...any) {
	d.next.Conditions = spec.WithCondition(d.next.Conditions, spec.Condition{
		Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
		ObservedGeneration: d.disk.Generation, LastTransitionTime: metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)),
	})
}

// say sets the phase, and the condition Ready.
func (d *decision) say(phase spec.DiskPhase, status metav1.ConditionStatus, reason, format string, args ...any) {
	if phase == "" {
		phase = spec.DiskPending
	}
	d.next.Phase = phase
	d.condition(conditions.Ready, status, reason, format, args...)
}

// wait says what the disk waits for, and fail what somebody has to do.
func (d *decision) wait(reason, format string, args ...any) {
	d.say(spec.DiskProvisioning, metav1.ConditionFalse, reason, format, args...)
}

func (d *decision) fail(reason, format string, args ...any) {
	d.say(spec.DiskFailed, metav1.ConditionFalse, reason, format, args...)
}

// maxAttached is how many machines the definition lets a status name.
const maxAttached = 64

// attachments says who has the disk.
func (d *decision) attachments() {
	d.next.AttachedToVirtualMachines = nil
	copies := d.copies()
	for _, m := range d.users() {
		if !slices.Contains(copies, m) && len(d.next.AttachedToVirtualMachines) < maxAttached {
			d.next.AttachedToVirtualMachines = append(d.next.AttachedToVirtualMachines, spec.AttachedVirtualMachine{Name: m})
		}
	}
	if all := d.users(); len(all) > len(copies) {
		d.condition(conditions.DiskInUse, metav1.ConditionTrue, conditions.ReasonDiskAttached, d.usedText, few(all))
		return
	}
	if len(copies) > 0 {
		d.condition(conditions.DiskInUse, metav1.ConditionTrue, conditions.ReasonDiskCopied, "it is being copied by pod %s%s", few(copies), d.copyText)
		return
	}
	d.condition(conditions.DiskInUse, metav1.ConditionFalse, conditions.ReasonDiskNotInUse, "%s", d.unusedText)
}

// users are the machines that have the disk, and the pods of others that do.
func (d *decision) users() []string {
	out := append(slices.Clone(d.s.Machines), d.pods()...)
	slices.Sort(out)
	return slices.Compact(out)
}

// pods are the pods that have the claim, but for the disk's own.
func (d *decision) pods() []string { return unfinished(d.s.Users) }

// unfinished are the names of the pods that have not ended.
func unfinished(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		if p := &pods[i]; !finished(p) {
			// Who has it is the machine that it is exported to.
			out = append(out, cmp.Or(objects.ExportsFor(p), p.Name))
		}
	}
	slices.Sort(out)
	return out
}

// copies are the pods that copy the disk into another one, and no machines.
func (d *decision) copies() []string {
	var out []string
	for i := range d.s.Users {
		if p := &d.s.Users[i]; !finished(p) && (p.Labels[names.LabelDisk] != "" || p.Labels[names.LabelImage] != "" || p.Labels[names.LabelImageServer] != "") && !slices.Contains(d.s.Machines, p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}

// few are some names for people.
func few(all []string) string {
	const most = 5
	if len(all) > most {
		return fmt.Sprintf("%s and %d others", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (d *decision) held() bool { return slices.Contains(d.disk.Finalizers, d.finalizer) }

// mine reports whether an object was made for this very disk: nothing but the making of
// one says so.
func (d *decision) mine(o metav1.Object) bool {
	return d.disk.UID != "" && o.GetAnnotations()[names.AnnotationMadeFor] == string(d.disk.UID)
}

// isFilled reports whether the disk is in its claim.
func (d *decision) isFilled() bool {
	return d.s.Claim != nil && d.s.Claim.Annotations[names.AnnotationFilled] == string(d.disk.UID)
}

// needsFilling reports whether something has to be put into the claim of a disk.
func needsFilling(disk *spec.VirtualDisk) bool {
	return disk.Spec.DataSource != nil || disk.Spec.VolumeMode() == corev1.PersistentVolumeFilesystem
}

// deleted lets the disk go when no machine has it. Its claim is the garbage collector's:
// it goes with its owner, or stays if the disk is deleted with --cascade=orphan.
func (d *decision) deleted() {
	if !d.held() {
		d.gone = true
		return
	}
	if p := d.s.DownloadPod; p != nil && d.mine(p) {
		d.end(p) // it is one of the users
	}
	if all := d.users(); len(all) > 0 {
		d.say(spec.DiskTerminating, metav1.ConditionFalse, conditions.ReasonDiskAttached,
			"it is being deleted, and kept while "+d.heldText, few(all))
		return
	}
	if p := d.s.Pod; p != nil && d.mine(p) {
		d.say(spec.DiskTerminating, metav1.ConditionFalse, conditions.ReasonDiskDeleting, "it is being deleted when pod %s has ended", p.Name)
		d.end(p)
		return
	}
	if d.do(reconcile.SetFinalizers{
		Kind: d.kind, Name: d.disk.Name, UID: d.disk.UID, ResourceVersion: d.disk.ResourceVersion,
		Finalizers: slices.DeleteFunc(slices.Clone(d.disk.Finalizers), func(f string) bool { return f == d.finalizer }), Releases: true,
	}) {
		d.gone = true
	}
}

// end deletes the pod that fills the disk.
func (d *decision) end(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		d.do(reconcile.DeletePod{Name: p.Name, UID: p.UID, GraceSeconds: importGrace})
	}
}

// alive brings the disk about.
func (d *decision) alive() {
	if d.s.Unreadable != "" {
		d.fail(conditions.ReasonInvalidSpecification, "%s; correct it", d.s.Unreadable)
		return
	}
	if errs := d.validate(); len(errs) > 0 {
		d.fail(conditions.ReasonInvalidSpecification, "%v", errs.ToAggregate())
		return
	}
	if !d.held() {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is about to be made", d.claimName)
		d.do(reconcile.SetFinalizers{
			Kind: d.kind, Name: d.disk.Name, UID: d.disk.UID, ResourceVersion: d.disk.ResourceVersion,
			Finalizers: append(slices.Clone(d.disk.Finalizers), d.finalizer),
		})
		return
	}
	if d.claim() && d.content() {
		d.ready()
	}
	d.size()
}

// claim makes the claim. It reports whether there is one that is the disk's.
func (d *decision) claim() bool {
	c, name := d.s.Claim, d.claimName
	known := ""
	if t := d.disk.Status.Target; t != nil {
		known = string(t.PersistentVolumeClaimUID)
	}
	if (c == nil || !d.mine(c)) && percentOf(d.next.Progress) == 100 {
		d.next.Progress = "" // of what is gone nothing is there
	}
	switch {
	case c == nil && known != "" && known != d.cloneRefused():
		d.fail(conditions.ReasonClaimGone, "claim %s is gone, and with it what was on the %s: no empty one takes its place. Delete this %[2]s, and make another one", name, d.noun)
		return false
	case c == nil:
		d.newClaim()
		return false
	case !d.mine(c):
		d.fail(conditions.ReasonDiskClaimInTheWay,
			"there is a claim %s already that was not made for this %s, and is left alone: name the %[2]s otherwise, or use the claim by persistentVolumeClaim of a machine's disk, or delete it if nobody needs what is in it", name, d.noun)
		return false
	case known != "" && known != string(c.UID) && known != d.cloneRefused():
		d.fail(conditions.ReasonClaimGone, "claim %s is not the one that the %s was in, which is gone; it is left alone. Delete this %[2]s, and make another one", name, d.noun)
		return false
	case c.DeletionTimestamp != nil && d.cloneRefused() == string(c.UID) && !d.isFilled():
		d.wait(conditions.ReasonDiskProvisioning, "claim %s, which was to be a clone and holds nothing, is being deleted; a copy takes its place", name)
		return false
	case c.DeletionTimestamp != nil:
		d.fail(conditions.ReasonClaimTerminating, "claim %s is being deleted, with what is on the %s as soon as no pod uses it: this cannot be taken back. Copy what you need, delete this %[2]s, and make another one", name, d.noun)
		return false
	case c.Status.Phase == corev1.ClaimLost:
		d.fail(conditions.ReasonClaimLost, "claim %s has lost its volume: restore the volume, or delete this %s and make another one", name, d.noun)
		return false
	}
	d.next.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: name, PersistentVolumeClaimUID: c.UID, Namespace: d.namespace()}
	// Nothing is put into a claim before it is noted which one that is.
	if known != string(c.UID) {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is there", name)
		return false
	}
	return !d.lateClone()
}

// content fills the claim. It reports whether the disk is in it.
func (d *decision) content() bool {
	p := d.s.Pod
	if p != nil && !d.mine(p) {
		p = nil
	}
	if d.isFilled() || !needsFilling(d.disk) {
		if p != nil {
			d.end(p)
		}
		d.next.Import = nil
		if d.next.Progress = ""; d.isFilled() {
			d.next.Progress = "100%"
		}
		return true
	}
	if p != nil {
		d.attempt(p)
		return false
	}
	im := d.disk.Status.Import
	if source := d.disk.Spec.DataSource; source != nil && source.ObjectRef == nil && !d.uploaded() {
		if why, setting := objects.RefuseSource(source.Location(), &d.s.Settings.Allowed); why != "" {
			d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskSourceNotAllowed, "%s; the administrator can allow it by the option %s of the operator", why, setting)
			return false
		}
	}
	switch image := objects.ImporterImage(&d.s.Settings); {
	case objects.IsFormerRunner(image):
		d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskProvisioning, "the operator has no image of a runner of ours, but %s: the administrator names one by its option runnerImage", image)
		return false
	case im != nil && im.Final:
		d.fail(conditions.ReasonDiskImportFailed, "%s; another attempt would end likewise: correct the source in another %s, and delete this one", im.Message, d.noun)
		return false
	case d.s.Pod != nil:
		d.say(spec.DiskPending, metav1.ConditionFalse, conditions.ReasonDiskPodInTheWay, "there is a pod %s that is not this %s's: delete it, or name the %[2]s otherwise", d.s.Pod.Name, d.noun)
		return false
	case len(d.pods()) > 0:
		d.wait(conditions.ReasonDisksInUse, "claim %s is used by pod %s already, before the %s is in it: delete that first", d.s.Claim.Name, few(d.pods()), d.noun)
		return false
	}
	if !d.source() {
		return false
	}
	if d.uploaded() {
		d.takeUpload(im)
		return false
	}
	if im != nil && im.FailedAt != nil {
		again := im.FailedAt.Add(reconcile.Backoff(importDelay, int(im.Attempts)))
		if d.s.Now.Before(again) {
			d.plan.WakeAt(again)
			d.wait(conditions.ReasonDiskImportFailed, "%s; this was attempt %d, and the next one is at %s", im.Message, im.Attempts, again.UTC().Format(time.RFC3339))
			return false
		}
	}
	if d.do(reconcile.Create{Object: d.importJob()}) {
		d.wait(conditions.ReasonDiskProvisioning, "pod %s is being made, which puts the %s into claim %s", d.podName, d.noun, d.s.Claim.Name)
	}
	return false
}

// source reports whether what the disk is a copy of can be read, if that is another
// disk or an image: it is there, and nobody writes to it. A disk that is copied keeps the
// machines waiting that have it, as any other pod that has their claim; to an image
// nobody writes.
func (d *decision) source() bool {
	if d.disk.Spec.DataSource == nil || d.disk.Spec.DataSource.ObjectRef == nil {
		return true
	}
	ref := d.disk.Spec.DataSource.ObjectRef
	wait := func(reason, format string, args ...any) bool {
		d.plan.WakeAt(d.s.Now.Add(sourceDelay)) // of what becomes of others nobody tells
		d.say(spec.DiskPending, metav1.ConditionFalse, reason, "%s %s, which it is a copy of, "+format, append([]any{ref.Kind, ref.Name}, args...)...)
		return false
	}
	from, c := subjectOf(&Snapshot{Disk: d.s.Source, Image: d.s.SourceImage, ClusterImage: d.s.SourceClusterImage}), d.s.SourceClaim
	switch {
	case ref.Kind == spec.KindClusterImage && d.s.NoClusterImages:
		return wait(conditions.ReasonDiskSourceNotReady, "is none of this operator's, which looks after single namespaces")
	case from.object == nil || from.kind != ref.Kind:
		return wait(conditions.ReasonDiskSourceNotReady, "does not exist: create it, or correct the name in another %s", d.noun)
	case from.disk.DeletionTimestamp != nil:
		return wait(conditions.ReasonDiskSourceNotReady, "is being deleted")
	case from.disk.UID == "" || c == nil || c.Annotations[names.AnnotationMadeFor] != string(from.disk.UID) || c.DeletionTimestamp != nil ||
		from.disk.Status.Phase != spec.DiskReady && from.disk.Status.Phase != spec.DiskResizing ||
		c.Status.Phase != corev1.ClaimBound || needsFilling(from.disk) && c.Annotations[names.AnnotationFilled] != string(from.disk.UID):
		return wait(conditions.ReasonDiskSourceNotReady, "is not ready; see kubectl describe %s %s", from.short, from.disk.Name)
	case from.image == nil && len(d.sourceWriters()) > 0:
		return wait(conditions.ReasonDisksInUse, "is used by pod %s: stop that machine until the copy is there", few(d.sourceWriters()))
	case d.image != nil && ref.Kind != spec.KindClusterImage:
		return true // what it takes of the volume the pod knows
	}
	has := from.disk.Spec.PersistentVolumeClaim.Size
	if from.image != nil {
		has = marked(c, names.AnnotationImageSize)
	}
	if d.image == nil && spec.CompareQuantities(d.disk.Spec.PersistentVolumeClaim.Size, has) < 0 {
		d.fail(conditions.ReasonDiskImportFailed, "%s %s, which it is a copy of, has %s, and no disk is made smaller: ask for as much", ref.Kind, ref.Name, has.String())
		return false
	}
	return ref.Kind != spec.KindClusterImage || d.server(ref.Name, c, wait)
}

// torn reports whether somebody may have written to what a pod copies. That is nobody who
// looks first: it keeps a copy from being believed whose pod and a machine's were made at
// one moment.
func (d *decision) torn() bool {
	return d.disk.Spec.DataSource != nil && d.disk.Spec.DataSource.ObjectRef != nil && d.disk.Spec.DataSource.ObjectRef.Kind == spec.KindDisk &&
		len(d.sourceWriters()) > 0
}

// sourceWriters are the pods that may write to what the disk is a copy of: all that have
// not ended, but for those that copy it, or give it to who downloads it.
func (d *decision) sourceWriters() []string {
	return unfinished(slices.DeleteFunc(slices.Clone(d.s.SourceUsers), func(p corev1.Pod) bool {
		return objects.OnlyCopies(&p, objects.ClaimOfDisk(d.disk.Spec.DataSource.ObjectRef.Name))
	}))
}

// attempt looks after a pod that fills the disk.
func (d *decision) attempt(p *corev1.Pod) {
	im := d.disk.Status.Import
	counted := im != nil && im.PodUID == p.UID
	switch {
	case !counted && p.Status.Phase == corev1.PodSucceeded && d.torn():
		d.count(p, runnerconfig.Imported{Final: true, Error: fmt.Sprintf("VirtualDisk %s was used by pod %s while it was copied, so that the copy may be torn",
			d.disk.Spec.DataSource.ObjectRef.Name, few(d.sourceWriters()))})
	case counted || p.DeletionTimestamp != nil && !finished(p):
		d.wait(conditions.ReasonDiskProvisioning, "pod %s is ending; another one is made when it is gone", p.Name)
		switch {
		case d.uploaded():
			d.needUpload(im)
		case im != nil && im.Message != "":
			d.wait(conditions.ReasonDiskImportFailed, "%s; pod %s is ending, and another one is made when it is gone", im.Message, p.Name)
		}
		d.end(p)
	case p.Status.Phase == corev1.PodSucceeded && said(p).Error == "" && d.s.ClusterImage != nil && (len(said(p).SHA256) != 64 || said(p).Length <= 0):
		d.count(p, runnerconfig.Imported{Error: "the pod did not say which digest the image has: the runner's image is one of an earlier version"})
	case p.Status.Phase == corev1.PodSucceeded && said(p).Error == "":
		got := said(p)
		if d.disk.Spec.VolumeMode() != corev1.PersistentVolumeBlock {
			d.next.Format = got.Format
		}
		d.wait(conditions.ReasonDiskProvisioning, "the %s is in claim %s", d.noun, d.s.Claim.Name)
		d.do(reconcile.UpdateClaim{
			Name: d.s.Claim.Name, UID: d.s.Claim.UID, ResourceVersion: d.s.Claim.ResourceVersion,
			Annotations: d.marks(got),
		})
	case finished(p):
		d.failed(p)
	case d.uploaded():
		d.uploads(p)
	default:
		if why := machine.WaitsFor(p); why != "" {
			d.wait(conditions.ReasonPodNotStarted, "pod %s, which puts the %s into claim %s, has not started: %s; see kubectl describe pod %[1]s%[5]s", p.Name, d.noun, d.s.Claim.Name, why, d.in)
			return
		}
		what := "makes an empty disk"
		if source := d.disk.Spec.DataSource; source != nil && source.ObjectRef != nil {
			what = "makes the " + d.noun + " of " + source.ObjectRef.Kind + " " + source.ObjectRef.Name
		} else if source != nil {
			what = "makes the " + d.noun + " of " + withoutQuery(source.Location())
		}
		d.wait(conditions.ReasonDiskProvisioning, "pod %s %s; see kubectl logs %s%s", p.Name, what, p.Name, d.in)
		d.progress()
	}
}

// progress tells how far the attempt is, which never goes back.
func (d *decision) progress() {
	d.plan.WakeAt(d.s.Now.Add(progressDelay)) // nobody tells
	got := d.s.Progress
	if got == nil {
		return
	}
	im := spec.VirtualDiskImport{}
	if d.disk.Status.Import != nil {
		im = *d.disk.Status.Import
	}
	im.Step, im.DoneBytes, im.TotalBytes = got.Step, got.Done, got.Total
	d.next.Import = &im
	if percent := got.Percent(); percent >= percentOf(d.disk.Status.Progress) {
		d.next.Progress = fmt.Sprintf("%d%%", percent)
	}
}

// percentOf is what a progress says; 0 if that is nothing.
func percentOf(progress string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(progress, "%"))
	if err != nil {
		return 0
	}
	return n
}

// failed counts an attempt that has failed. The pod is deleted when that is written.
func (d *decision) failed(p *corev1.Pod) {
	got := said(p)
	if got.Error == "" {
		got.Error = "it ended without a disk"
	}
	if p.Status.Message != "" || p.Status.Reason != "" {
		got.Error = strings.TrimPrefix(strings.Join([]string{got.Error, p.Status.Reason, p.Status.Message}, "; "), "; ")
	}
	d.count(p, got)
}

// count counts an attempt, with what there is to say of it.
func (d *decision) count(p *corev1.Pod, got runnerconfig.Imported) {
	next := spec.VirtualDiskImport{Attempts: 1, PodUID: p.UID, Message: spec.BoundedMessage(got.Error), Final: got.Final, CloneRefused: types.UID(d.cloneRefused())}
	if len(next.Message) > maxImportMessage {
		next.Message = strings.ToValidUTF8(next.Message[:maxImportMessage], "")
	}
	if im := d.disk.Status.Import; im != nil {
		next.Attempts = min(im.Attempts, maxAttempts) + 1
	}
	now := metav1.NewTime(d.s.Now.UTC().Truncate(time.Second))
	next.FailedAt = &now
	d.next.Progress = ""
	d.next.Import = &next
	if d.uploaded() {
		// Another upload may be better: whoever makes it asks for it.
		next.Request, next.Final = objects.UploadRequest(p), false
		d.needUpload(&next)
	} else {
		d.wait(conditions.ReasonDiskImportFailed, "%s; this was attempt %d", next.Message, next.Attempts)
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: conditions.ReasonDiskImportFailed, Action: "Import", Note: next.Message,
	})
}

// The greatest number of attempts that is counted, and of the bytes of what one says.
const (
	maxAttempts      = 1 << 20
	maxImportMessage = 2000
)

// said are the last words of a pod that fills a disk. Nobody but the pod vouches for them.
func said(p *corev1.Pod) runnerconfig.Imported {
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil {
			return runnerconfig.ParseImported(t.Message)
		}
	}
	return runnerconfig.ParseImported("")
}

// withoutQuery is a URL without what may be a secret in it.
func withoutQuery(location string) string {
	location, _, _ = strings.Cut(location, "?")
	location, _, _ = strings.Cut(location, "#")
	return location
}

// ready says how a disk is that has all that it needs.
func (d *decision) ready() {
	c := d.s.Claim
	if format := c.Annotations[names.AnnotationDiskFormat]; d.isFilled() && format != "" {
		d.next.Format = format
	}
	if c.Status.Phase != corev1.ClaimBound {
		if d.image != nil { // what has filled it has seen more than the caches
			d.wait(conditions.ReasonDiskProvisioning, "claim %s has no volume yet; see kubectl describe pvc %[1]s%[2]s", c.Name, d.in)
			return
		}
		d.say(spec.DiskWaitForFirstConsumer, metav1.ConditionFalse, conditions.ReasonDiskWaitForFirstConsumer,
			"claim %s has no volume yet: it gets one from its storage class, with some when the first machine uses the disk; see kubectl describe pvc %s", c.Name, c.Name)
		return
	}
	was := d.disk.Status.Phase
	d.say(spec.DiskReady, metav1.ConditionTrue, d.readyReason, "%s", d.readyText)
	if was != spec.DiskReady && was != spec.DiskResizing {
		d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: d.readyReason, Action: "Provision", Note: d.readyText + "; the " + d.noun + " is in claim " + c.Name})
	}
}

// behind is a guest that has less of the disk than that asks for; nil if there is none.
// What a machine said that has no pod with the disk is of an earlier run.
func (d *decision) behind() *Guest {
	running := unfinished(d.s.Users)
	for i := range d.s.Guests {
		g := &d.s.Guests[i]
		if slices.Contains(running, g.Machine) && spec.CompareQuantities(g.Size, d.disk.Spec.PersistentVolumeClaim.Size) < 0 {
			return g
		}
	}
	return nil
}

// also adds what somebody said to a sentence.
func also(message string) string {
	if message == "" {
		return ""
	}
	return ": " + spec.BoundedMessage(message)
}

// notResized takes back that a disk has grown which is not there any more.
func (d *decision) notResized() {
	if spec.ConditionIsTrue(d.next.Conditions, conditions.DiskResized) {
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing, "the disk is not there: its condition Ready says why")
	}
}

// size lets the claim grow, and says what it has.
func (d *decision) size() {
	c := d.s.Claim
	if d.image != nil {
		return
	}
	if c == nil || d.next.Target == nil || c.UID != d.next.Target.PersistentVolumeClaimUID || !d.mine(c) {
		d.notResized()
		return
	}
	has, there := c.Status.Capacity[corev1.ResourceStorage]
	if there && c.Status.Phase == corev1.ClaimBound {
		// One that means the same is no reason to write.
		if d.next.Capacity == nil || d.next.Capacity.Cmp(has) != 0 {
			q := has.DeepCopy()
			d.next.Capacity = &q
		}
	}
	if c.DeletionTimestamp != nil || !d.next.Phase.Usable() {
		d.notResized()
		return
	}
	want, asked := d.disk.Spec.PersistentVolumeClaim.Size, c.Spec.Resources.Requests[corev1.ResourceStorage]
	switch order := spec.CompareQuantities(want, asked); {
	case order < 0:
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonShrinkRefused,
			"the disk asks for %s, but claim %s has asked for %s already, and disks do not shrink; ask for %[3]s again", want.String(), c.Name, asked.String())
		return
	case order > 0 && c.Status.Phase == corev1.ClaimBound:
		// Kubernetes lets a claim grow once it is bound.
		u := reconcile.UpdateClaim{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Storage: &want}
		if f := reconcile.Refused(d.s.Failures, u.Target(), d.s.Now); f != nil {
			d.plan.WakeAt(f.RetryAt())
			d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonWriteRefused, "claim %s does not grow to %s: %s", c.Name, want.String(), strings.TrimSpace(f.Message))
			return
		}
		d.plan.Actions = append(d.plan.Actions, u)
		fallthrough
	case there && spec.CompareQuantities(has, want) < 0 && c.Status.Phase == corev1.ClaimBound:
		if d.next.Phase == spec.DiskReady {
			d.next.Phase = spec.DiskResizing
		}
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing,
			"the volume grows from %s to %s, with some storage classes when a pod uses it next; see kubectl describe pvc %s", has.String(), want.String(), c.Name)
		return
	case c.Status.Phase != corev1.ClaimBound:
		return
	}
	if g := d.behind(); g != nil {
		if d.next.Phase == spec.DiskReady {
			d.next.Phase = spec.DiskResizing
		}
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing,
			"the volume has %s, and the guest of machine %s has %s of it so far%s", has.String(), g.Machine, g.Size.String(), also(g.Message))
		return
	}
	d.condition(conditions.DiskResized, metav1.ConditionTrue, conditions.ReasonDiskResized, "the volume has what the disk asks for")
}
