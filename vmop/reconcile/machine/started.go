package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) findRestart() {
	none := finding{status: metav1.ConditionFalse, reason: spec.ReasonNoRestartRequired, message: "no change waits for a restart"}
	if d.invalid {
		d.awaiting = nil
		d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonInvalidSpecification, message: "the specification is not valid"}
		return
	}
	if !d.pod.exists() {
		d.restart = none
		return
	}
	text, known := d.pod.pod.Annotations[names.AnnotationStarted]
	// An unchanged machine is recognized without decoding the long annotation.
	same := d.asStarted(text)
	if !known {
		d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonUnexpectedState,
			message: "the machine was started by VM-Operator, which does not note with what; this is known after the next start"}
		return
	}
	var before *spec.VirtualMachineSpec
	if !same {
		then := startedWith(text)
		if then == nil {
			d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonUnexpectedState,
				message: "annotation " + names.AnnotationStarted + " of the pod cannot be read; what waits is known after the next start"}
			return
		}
		before = then.Spec
	}
	d.startKnown = true
	d.findChanges(before)
	d.formerCertificate()
	d.newDocuments()
	if len(d.awaiting) == 0 {
		d.restart = none
		return
	}
	d.restart = finding{status: metav1.ConditionTrue, reason: spec.ReasonChangesPendingRestart,
		message: fmt.Sprintf("%d changes wait for the next start of the machine; see status.restartAwaitingChanges", len(d.awaiting))}
	if len(d.awaiting) == 1 {
		d.restart.message = waitsForStart(d.awaiting[0].Path)
		if m, more, cut := strings.Cut(d.awaiting[0].Message, "; "); m != "" {
			d.restart.message += ": " + m
			if cut && len(d.restart.message)+len(more) > conditions.Line {
				d.restart.message += "; see status.restartAwaitingChanges"
			} else if cut {
				d.restart.message += "; " + more
			}
		}
	}
}

func waitsForStart(path string) string {
	return "the change of " + path + " waits for the next start of the machine"
}

func (d *decision) findChanges(then *spec.VirtualMachineSpec) {
	if then != nil {
		d.compare(then)
	}
	d.tellHot()
	d.keptCPUs()
	d.unreachableCD()
}

// newDocuments finds documents of Secrets that only the next start gives to the guest. The
// operator cannot read them; the runner compares them with what it was given. A missing one is no
// reason to restart: the machine would not start.
func (d *decision) newDocuments() {
	if !d.executing() {
		return // they are those of a runner that has ended
	}
	for _, c := range d.stored.ChangedDocuments {
		path, secret := document(d.vm, c.Name)
		what := "the content of"
		if c.Name == spec.DocumentDisplayCertificate {
			what = "the certificate of the display in"
		}
		switch {
		case path == "" || slices.ContainsFunc(d.awaiting, func(a spec.AwaitingChange) bool { return strings.HasPrefix(a.Path, path) }):
			// It is going to have another one altogether.
		case c.Missing:
			d.lacks = true
			d.remarks = append(d.remarks, fmt.Sprintf("%s: the Secret %s, or the key in it, is not there any more, and the next start waits for it", path, secret))
		default:
			// Only viewers see a certificate, and issuers renew it at will: that restarts no
			// guest by itself.
			d.renewed = d.renewed || c.Name != spec.DocumentDisplayCertificate
			message := what + " the Secret " + secret + " has changed"
			if known := changes.OfKnownInstance(d.vm, path); known != "" {
				message += "; " + known
			}
			d.awaiting = append(d.awaiting, spec.AwaitingChange{Operation: spec.OperationReplace, Path: path, Message: message})
		}
	}
}

func document(vm *spec.VirtualMachine, name string) (path, secret string) {
	if name == spec.DocumentDisplayCertificate {
		if !encrypts(vm) || vm.Spec.VM.Display.TLS.GenerateSecret {
			return "", "" // one created by the operator does not change
		}
		return "spec.vm.display.tls.secretName", vm.Spec.VM.Display.TLS.SecretName
	}
	if p := vm.Spec.Provisioning; p != nil {
		switch {
		case name == spec.DocumentUserData && p.UserDataRef != nil:
			return "spec.provisioning.userDataRef", p.UserDataRef.Name
		case name == spec.DocumentSysprep && p.SysprepRef != nil:
			return "spec.provisioning.sysprepRef", p.SysprepRef.Name
		}
	}
	c := vm.Spec.CloudInit
	if c == nil {
		return "", ""
	}
	from := map[string]*spec.CloudInitSource{
		spec.DocumentMetaData: c.MetaDataFrom, spec.DocumentUserData: c.UserDataFrom, spec.DocumentNetworkConfig: c.NetworkConfigFrom,
	}[name]
	if from == nil {
		return "", ""
	}
	return "spec.cloudInit." + name + "From", from.SecretRef.Name
}

func (d *decision) compare(then *spec.VirtualMachineSpec) {
	now := concealed(&d.vm.Spec)
	old, new := &spec.VirtualMachine{Spec: *then}, &spec.VirtualMachine{Spec: *now}
	old.Name, new.Name = d.vm.Name, d.vm.Name
	for _, c := range d.between(old, new) {
		if c.Applied != changes.AppliedRestart {
			continue
		}
		waits := spec.AwaitingChange{
			Operation: c.Operation, Path: c.Path, CurrentValue: extension(c.OldValue), DesiredValue: extension(c.NewValue),
		}
		if c.IsDisk() {
			waits.Message = c.Reason
		}
		d.awaiting = append(d.awaiting, waits)
	}
	d.shorterGrace(then)
}

// shorterGrace finds a power-down timeout longer than the pod's grace period. The operator and
// the runner follow it at once; other clients that delete the pod (kubectl delete pod, a node
// drain) use the grace period it was created with, which is immutable. A shorter one is for the
// runner.
func (d *decision) shorterGrace(then *spec.VirtualMachineSpec) {
	had, has := then.ShutdownSeconds(), d.vm.Spec.ShutdownSeconds()
	if then.VM.PowerdownTimeout == nil || has <= had {
		return
	}
	path := "spec.vm.powerdownTimeout"
	if d.vm.Spec.TerminationGracePeriodSeconds != nil {
		path = "spec.terminationGracePeriodSeconds"
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{
		Operation: spec.OperationReplace, Path: path,
		CurrentValue: extension(fmt.Append(nil, had)), DesiredValue: extension(fmt.Append(nil, has)),
	})
}

// keptCPUs finds processors that only the next start removes: a machine without KVM keeps them
// (see live.UnplugCPU), which only its runner's report shows.
func (d *decision) keptCPUs() {
	has, wanted := d.stored.CPUs, changes.CurrentCPUs(&d.vm.Spec.VM)
	if !d.executing() || d.stored.Accelerator != string(spec.AcceleratorTCG) || has <= wanted {
		return
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{
		Operation: spec.OperationReplace, Path: "spec.vm.currentCpus",
		CurrentValue: extension(fmt.Append(nil, has)), DesiredValue: extension(fmt.Append(nil, wanted)),
	})
}

// unreachableCD finds a file of the image repository that only the next pod can read: this one
// was made when the manifest named none.
func (d *decision) unreachableCD() {
	if objects.PodHasClaim(d.pod.pod, names.ImageRepositoryClaim) {
		return
	}
	field := d.repositoryField()
	if field == "" || slices.ContainsFunc(d.awaiting, func(c spec.AwaitingChange) bool { return c.Path == field }) {
		return
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{Operation: spec.OperationReplace, Path: field})
}
