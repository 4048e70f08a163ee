package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Decide is total and deterministic: equal snapshots give equal plans, and the
// snapshot is not changed.
//
// A machine that is being deleted and one whose specification is invalid get no
// new objects. The pod of the one is deleted, and the machine let go when it has
// ended; that of the other is left alone, unless the machine should stop.
func Decide(s Snapshot) reconcile.Plan {
	if s.VM == nil || s.Bare && s.VM.DeletionTimestamp == nil {
		return reconcile.Plan{} // there is nothing to decide about
	}
	d := begin(&s)
	d.end, d.ranWith = d.stored.LastEnd, d.stored.Claims
	d.findPower()
	if !d.responsible() {
		return d.plan
	}
	switch {
	case s.VM.DeletionTimestamp != nil:
		d.deleted()
	case d.pod.state == podOrphaned:
		d.orphaned()
	case !d.valid() || !d.allowed() || d.unstartable():
		d.hold()
		d.power()
	default:
		d.hold()
		d.findCertificate()
		d.findProvisioning()
		d.findRestart()
		d.judgeImage()
		d.findClaims()
		d.findMounts()
		d.findRepository()
		d.makeSecret()
		d.makeUserData()
		d.findGrant()
		if d.recordOrigin() {
			_ = d.makeConfigMap() // the finding says the same
		}
		d.makeClaims()
		d.findRenewal()
		d.power()
		if !d.invalid {
			// What a running machine does not wait for comes last, so that a
			// refusal keeps no machine from running.
			d.annotatePod()
			d.attachDisks()
			d.resize()
			d.judgeLimit()
			d.judgeRunner()
			d.updateClaims()
			d.makeService()
			d.dropUserData()
		}
	}
	d.executesIn()
	d.report()
	return d.plan
}

// begin finds what a decision is about: the machine with its class, and its pod.
func begin(s *Snapshot) *decision {
	d := &decision{s: s, vm: manifest.Defaulted(s.VM), shown: &s.VM.Status}
	d.amendments = spec.Amend(&d.vm.Spec)
	d.pod = lookAtPod(s, d.vm)
	d.findClass()
	believed := *s.VM
	believed.Status = *s.Authors.Believed(d.shown, d.pod.former())
	s.VM, d.stored = &believed, &believed.Status
	return d
}

// decision is the state of one call of Decide.
type decision struct {
	s  *Snapshot
	vm *spec.VirtualMachine // with its defaults, amended, of its class, and without status
	// manifest is what vm would be without its class.
	manifest *spec.VirtualMachine
	// classNow is the class of vm, nil if there is none; then that of its pod, if it
	// has any.
	classNow, then *startedClass
	// unclassed: the class is not to be had; oversized: it does not allow the size.
	unclassed, oversized bool
	// shown is the status as it is stored, stored what is believed of it.
	shown, stored *spec.VirtualMachineStatus
	plan          reconcile.Plan
	// amendments are what vm has otherwise than it is stored.
	amendments []spec.Amendment

	// on: the machine should run. powered is what its run policy has come to, nil if
	// it has none. restarts: its pod is to be replaced though it runs.
	on       bool
	powered  *spec.Power
	restarts bool

	pod   podView
	disks []machineconfig.Disk
	// hot are the disks of the manifest that the machine that runs has, or gets, by
	// attachments of its own: disks has them not. startKnown: it is known which they are.
	// unplugged is how many of the changes that are waited for are such disks, which could
	// not be attached.
	hot        []machineconfig.Disk
	startKnown bool
	unplugged  int
	claims     []neededClaim
	origin     machineconfig.Origin
	// modes are those of the claims that disks refer to.
	modes map[string]corev1.PersistentVolumeMode
	// growTo is how large those are to be that are VirtualDisks, in bytes.
	growTo map[string]int64
	// serials are the serial numbers of the disks, one for each, if the configuration
	// could be made.
	serials []string
	// attachedSerials are those of the disks that are attached, by the attachments.
	attachedSerials map[types.UID]string
	// mounts are the volumes of attachments that the next pod has, if there is none, exporter
	// is the pod that it waits for because of them, and exporterUntil until when.
	mounts        []objects.Attached
	exporter      string
	exporterUntil time.Time
	// secret is the display secret, nil if there is none.
	secret *corev1.Secret
	// certificate is the name of the Secret with the certificate of the display, if
	// the operator makes it and there is one.
	certificate string
	// userData is the name of the Secret with the user data of the manifest, if that has
	// any and there is one.
	userData string
	// invalid: the specification cannot be carried out.
	invalid bool
	// unmade: something that the pod needs does not exist yet as it should.
	unmade bool
	// configured: the ConfigMap is there as it should be.
	configured bool

	// grant is what the runner is told that the guest may use.
	grant objects.Amounts
	// recorded and noted are read once; see resizable and granted.
	recorded *recordedRequests
	noted    *notedGrant
	// remarks end the message of a configuration that is applied.
	remarks []string
	// unsuitable: no pod is made with the image that the machine has.
	unsuitable bool
	// renewed: a document of a Secret is another one than the guest was given; lacks:
	// one is gone, without which the machine is not started.
	renewed, lacks bool
	// creates: the plan makes the pod.
	creates bool
	// holds: the plan writes the machine, which has another version then; released:
	// it lets the machine go.
	holds, released bool

	// sole is about other operators.
	sole finding

	// What the conditions will say. The first problem with something stays, or
	// else the first finding.
	configuration, devices, running, restart, accelerated, provisioning finding
	// Those about a class, of a machine that has one.
	class, size finding
	// ready sums up the others, upToDate is about the runner's image.
	ready, upToDate finding
	awaiting        []spec.AwaitingChange
	waits           []spec.Wait
	// due is when the next of the waits is to be told.
	due time.Time
	end *spec.MachineEnd
	// ranWith are the claims that the machine has run with.
	ranWith []spec.MachineClaim
}

// finding is what was found out about one aspect.
type finding struct {
	status          metav1.ConditionStatus // empty: nothing yet
	reason, message string
	// further is what the event that tells of it says after the message: the message is
	// one line, and commands need more.
	further string
	// object is what is waited for, by its kind and name. It is empty if nothing
	// is, and for a wait that is told of otherwise.
	object string
	// warning: a person may have to do something.
	warning bool
	// brief: it may pass by itself soon, and is told of when it does not.
	brief bool
}

func (f *finding) ok() bool { return f.status == "" || f.status == metav1.ConditionTrue }

// problem says that something is not as it should be, which a person may have
// to do something about. It reports whether that is the first problem, which stays.
func (f *finding) problem(reason, object, format string, args ...any) bool {
	if f.warning {
		return false
	}
	*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, warning: true}
	return true
}

// wait says that something is not yet as it should be, and will be.
func (f *finding) wait(reason, object, format string, args ...any) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, brief: true}
	}
}

// rest says that something is not so and need not be, or that nothing but the
// next look is waited for.
func (f *finding) rest(reason, format string, args ...any) { f.wait(reason, "", format, args...) }

// follow takes over why something else is not as it should be, which tells of it.
func (f *finding) follow(other finding) {
	if !f.warning {
		*f = other
		f.object = ""
	}
}

// fine says that all is well, if nothing was found that is not.
func (f *finding) fine(reason, message string) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionTrue, reason: reason, message: message}
	}
}

// urgent reports whether the status must say at once what was found.
func (f *finding) urgent() bool { return f.warning && !f.brief }

// wakeAt asks for another look.
func (d *decision) wakeAt(t time.Time) { d.plan.WakeAt(t) }

// do adds an action to the plan. If the API server has refused the same write,
// it is tried again after a growing delay only; until then do says no, and the
// finding says why.
func (d *decision) do(a reconcile.Action, about *finding) bool {
	f := reconcile.Refused(d.s.Failures, a.Target(), d.s.Now)
	if _, makes := a.(reconcile.Create); makes && f == nil {
		f = d.namespaceGoes()
	}
	if f != nil {
		d.refused(f, about)
		d.wakeAt(f.RetryAt())
		return false
	}
	d.plan.Actions = append(d.plan.Actions, a)
	return true
}

// namespaceGoes is a refusal because the namespace is being deleted, which holds for
// all that is to be made in it; nil if there is none.
func (d *decision) namespaceGoes() *reconcile.Failure {
	for i := range d.s.Failures {
		if f := &d.s.Failures[i]; f.NamespaceGoes && d.s.Now.Before(f.RetryAt()) {
			return f
		}
	}
	return nil
}

func (d *decision) refused(f *reconcile.Failure, about *finding) {
	why, object := strings.TrimSpace(f.Message), named(f.Target.Kind, f.Target.Name)
	switch {
	case f.NamespaceGoes:
		about.follow(finding{}) // nothing else is worth a word
		about.rest(spec.ReasonNamespaceTerminating, "namespace %s is being deleted, and the machine with it; nothing is made in it any more", d.vm.Namespace)
	case f.WantsLimits() && strings.Contains(why, "must specify") && f.Target.Verb == "create" && d.computesRequests():
		about.wait(spec.ReasonQuotaExceeded, object, "%s: %s; it is made with limits", f.Target, why)
	case f.Quota() && strings.Contains(why, "must specify"):
		about.problem(spec.ReasonQuotaExceeded, object, "%s: %s; name that in spec.resources", f.Target, why)
	case f.Quota():
		if about.problem(spec.ReasonQuotaExceeded, object, "%s: %s; raise the quota or free some of it", f.Target, why) {
			about.further = "; it is tried again within half a minute"
		}
	case f.LimitBelow() != "":
		d.limitBelow(f, about)
	case f.Reason == string(metav1.StatusReasonForbidden) && (d.mayNotDelete(f, about) || d.unprepared(why, about)):
	case f.Reason == string(metav1.StatusReasonForbidden):
		about.problem(spec.ReasonWriteRefused, object, "%s: %s; check the rights of the operator and the policies of the namespace", f.Target, why)
	default:
		about.problem(spec.ReasonWriteRefused, object, "%s: %s: %s; it is tried again", f.Target, f.Reason, why)
	}
}

// restartDelay is how long a machine that has failed once is not started again.
const restartDelay = 10 * time.Second

// valid reports whether the specification can be carried out.
func (d *decision) valid() bool {
	errs := spec.ValidateAmended(d.manifest)
	if len(errs) == 0 {
		return true
	}
	d.refuseFor(spec.ReasonInvalidSpecification, textsOf(errs), "; correct it")
	return false
}

// allowed reports whether the administrator lets manifests ask for what this one
// does.
func (d *decision) allowed() bool {
	refusals := objects.Refusals(d.manifest, d.s.Settings) // the administrator has made the class
	if len(refusals) == 0 {
		return true
	}
	texts := make([]string, len(refusals))
	for i, r := range refusals {
		texts[i] = r.String()
	}
	d.refuseFor(spec.ReasonNotAllowed, texts, "")
	return false
}

// unstartable reports whether the machine has no pod and gets none because of its
// class: nothing is made for it then.
func (d *decision) unstartable() bool {
	if !d.unfit() || d.pod.exists() {
		return false
	}
	d.unmade = true
	d.findRestart()
	d.configuration.follow(d.unfitness())
	return true
}

func (d *decision) refuse(err error) {
	d.refuseFor(spec.ReasonInvalidSpecification, strings.Split(err.Error(), "\n"), "; correct it")
}

// refuseFor says why nothing is changed, and what to do about it.
func (d *decision) refuseFor(reason string, why []string, next string) {
	d.invalid, d.unmade = true, true
	d.findRestart()
	ends := ""
	if cm := d.s.ConfigMap; d.pod.state == podRunning && cm != nil && cm.Annotations[names.AnnotationGuestResetEnds] != "" {
		// The configuration cannot be made anew without it.
		ends = ", and a reboot of the guest ends the machine"
	}
	told, left := conditions.List(why, "; ", len(next))
	if d.configuration.problem(reason, d.machine(), "%s%s", told, next) {
		d.configuration.further = after(left) + "; nothing is changed until then" + ends
	}
}

// judgeImage refuses VM-Operator's runner where a manifest names it: it would end
// in the machine's pod for a reason that says nothing to whoever reads it.
func (d *decision) judgeImage() {
	image := objects.RunnerImage(d.vm, &d.s.Settings)
	if image == objects.DefaultImage() || !objects.IsFormerRunner(image) {
		return // of a manifest that names none: the operator's settings are wrong
	}
	d.unsuitable = true
	if d.configuration.problem(spec.ReasonRunnerUnsuitable, d.machine(), "image %s is VM-Operator's runner, which cannot run in this pod; remove spec.image, or set the operator's runnerImages", image) {
		d.configuration.further = ", which replaces the image of all machines: VM-Operator's runner needs root and a privileged pod"
	}
}

// hold keeps a machine that has a pod, or gets one, visible until that has ended,
// should somebody delete it. One that never ran is not held, unless its disks are to
// be deleted with it: nobody need be there for it to go.
func (d *decision) hold() {
	if d.held() || (d.invalid || !d.wanted()) && !d.pod.exists() && d.pod.state != podOrphaned && !DeletesDisks(d.s.VM) {
		return
	}
	if d.pod.state == podAbsent {
		d.unmade = true // its pod follows when this is seen
	}
	d.holds = d.setFinalizers(append(slices.Clone(d.s.VM.Finalizers), names.FinalizerMachine), false, &d.configuration)
}

func (d *decision) held() bool { return slices.Contains(d.s.VM.Finalizers, names.FinalizerMachine) }

func (d *decision) setFinalizers(all []string, releases bool, about *finding) bool {
	return d.do(reconcile.SetFinalizers{
		Kind: names.KindVirtualMachine, Name: d.vm.Name, UID: d.s.VM.UID, ResourceVersion: d.s.VM.ResourceVersion,
		Finalizers: all, Releases: releases,
	}, about)
}

// deleted is for a machine that is being deleted. Its pod is deleted, and the
// machine stays until that has ended. Its other objects go with it by their owner
// references, and nothing must bring them back.
//
// Who deletes a machine with --cascade=orphan wants its pod to run on.
func (d *decision) deleted() {
	d.findRestart()
	d.configuration.rest(spec.ReasonMachineDeleted, "the machine is being deleted")
	if DeletesDisks(d.s.VM) {
		d.devices.rest(spec.ReasonMachineDeleted, "the machine is being deleted, and its volume claims with it when its guest has ended")
	} else {
		d.devices.rest(spec.ReasonMachineDeleted, "the machine is being deleted; its volume claims are kept")
	}
	switch {
	case d.leaves():
		d.orphan()
		d.release()
		d.running.rest(spec.ReasonMachineDeleted, "the machine is being deleted without its pod")
	case d.pod.state == podTerminating && !finished(d.pod.pod):
		d.terminating()
	case d.pod.state == podPending, d.pod.state == podRunning:
		d.deletePod()
		d.running.rest(spec.ReasonPodTerminating, podGoes, d.pod.pod.Name)
	default:
		d.running.rest(spec.ReasonMachineDeleted, "the machine is being deleted")
		if d.deleteDisks() {
			d.release()
		}
	}
}

// release lets a machine go that is being deleted.
func (d *decision) release() {
	if !d.held() {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(d.s.VM.Finalizers), func(f string) bool { return f == names.FinalizerMachine })
	d.released = d.setFinalizers(rest, true, &d.running)
}

// named names an object of the machine's namespace.
func named(kind, name string) string { return kind + " " + name }

func (d *decision) machine() string { return named(spec.KindVirtualMachine, d.vm.Name) }

// wanted reports whether the machine should run.
func (d *decision) wanted() bool { return d.on }

// owned reports whether an object has the machine as an owner.
func (d *decision) owned(o metav1.Object) bool { return ownedBy(o, d.s.VM) }

func ownedBy(o metav1.Object, vm *spec.VirtualMachine) bool {
	for _, r := range o.GetOwnerReferences() {
		if r.UID == vm.UID {
			return true
		}
	}
	return false
}

// ours reports whether an object has the labels of the operator and of a machine
// of this name, whichever that was.
func (d *decision) ours(o metav1.Object) bool {
	l := o.GetLabels()
	return l[names.LabelName] == names.AppName && l[names.LabelInstance] == d.vm.Name && l[names.LabelManagedBy] == names.ManagedBy
}
