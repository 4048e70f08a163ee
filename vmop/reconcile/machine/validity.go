package machine

import (
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// valid reports whether the specification can be applied. Documents in the ConfigMap were judged
// when they were written.
func (d *decision) valid() bool {
	manifest := d.manifest
	if d.recall(); d.recalled {
		manifest = brief(manifest)
	}
	errs := spec.ValidateAmended(manifest)
	if len(errs) == 0 {
		return true
	}
	d.refuseFor(spec.ReasonInvalidSpecification, textsOf(errs), "; correct it")
	return false
}

func (d *decision) allowed() bool {
	refusals := objects.Refusals(d.manifest, d.s.Settings) // the class is the administrator's
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

func (d *decision) refuse(err error) {
	d.refuseFor(spec.ReasonInvalidSpecification, strings.Split(err.Error(), "\n"), "; correct it")
}

func (d *decision) refuseFor(reason string, why []string, next string) {
	d.invalid, d.unmade = true, true
	d.findRestart()
	ends := ""
	if cm := d.s.ConfigMap; d.pod.state == podRunning && cm != nil && cm.Annotations[names.AnnotationGuestResetEnds] != "" {
		// The configuration cannot be made anew without it.
		ends = ", and a reboot of the guest ends the machine"
	}
	told, left := conditions.List(why, "; ", len(next))
	if line, whole := conditions.Fit(told, len(next)); !whole {
		told, left = line, why
	}
	if d.configuration.setProblem(reason, d.machine(), "%s%s", told, next) {
		d.configuration.further = after(left) + "; nothing is changed until then" + ends
	}
}

// judgeImage refuses VM-Operator's runner in a manifest: it would end in the machine's pod for a
// reason that explains nothing.
func (d *decision) judgeImage() {
	image := objects.RunnerImage(d.vm, &d.s.Settings)
	if image == objects.DefaultImage() || !objects.IsFormerRunner(image) {
		return // not the manifest's: the operator's settings are wrong
	}
	d.unsuitable = true
	if d.configuration.setProblem(spec.ReasonRunnerUnsuitable, d.machine(), "image %s is VM-Operator's runner, which cannot run in this pod; remove spec.image, or set the operator's runnerImages", image) {
		d.configuration.further = ", which replaces the image of all machines: VM-Operator's runner needs root and a privileged pod"
	}
}
