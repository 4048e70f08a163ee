package machine

import (
	"fmt"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// restartAsked reports whether a user has asked for the end of the existing pod: the request
// differs from that when the pod was made.
func (d *decision) restartAsked() bool {
	request := d.s.VM.Annotations[names.AnnotationPowerRequest]
	return verbOf(request) == VerbRestart && d.pod.exists() && d.pod.pod.Annotations[names.AnnotationPowerRequest] != request
}

// findRenewal finds out whether the machine's pod is to be replaced though it runs,
// because somebody has asked for that, or because changes wait and need nobody's
// approval. It goes on while a next pod could not start.
func (d *decision) findRenewal() {
	if d.pod.state != podRunning || d.pod.silent() || !d.wanted() {
		return
	}
	if !d.replaceable() {
		// The others pass by themselves, or are told where they are found.
		if see := d.lackingFor(); see != "" && d.renewsItself() {
			d.restartLacks("something is missing, see condition " + see)
		}
		return
	}
	asked := d.restartAsked()
	d.restarts = asked || d.renewsItself() && d.startsAgain()
	if !d.restarts || d.executedIn() != "" {
		return // it is told when it is done
	}
	note := "somebody has asked for a restart"
	if !asked {
		note = d.restart.message
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeNormal, Reason: reasonRestarted, Action: actionRun,
		Note: fmt.Sprintf("%s; the guest of pod %s is asked to shut down, and there is a new pod then", note, d.pod.pod.Name),
	})
}

// replaceable reports whether a next pod has all that it needs.
func (d *decision) replaceable() bool {
	return !d.invalid && !d.unmade && !d.unsuitable && !d.unfit() && d.devices.ok() && !d.short() && !d.lacks
}

// lackingFor is the condition that says what a next pod would lack, empty if none does.
func (d *decision) lackingFor() string {
	switch {
	case d.unfit():
		return spec.ConditionVirtualMachineClassReady
	case d.devices.warning:
		return spec.ConditionBlockDevicesReady
	}
	return ""
}

// renewsItself reports whether changes that wait for a restart cause it. They do so
// once: the next pod is made for the present specification. Those of a class alone
// do not.
func (d *decision) renewsItself() bool {
	if !d.vm.Spec.RestartsAutomatically() || len(d.awaiting) <= d.unplugged {
		return false
	}
	if d.renewed {
		return true // the next pod has the new content, of which its runner says nothing any more
	}
	then := startedWith(d.pod.pod.Annotations[names.AnnotationStarted])
	return then != nil && then.Generation > 0 && then.Generation < d.s.VM.Generation && d.changedItself(then)
}

// startsAgain reports whether the Secrets are there that a next pod needs, for which
// nobody watches: they are looked for when the status says that changes wait. While one
// is missing, the machine goes on and says so.
func (d *decision) startsAgain() bool {
	needed := neededSecrets(&d.vm.Spec)
	certificate := encrypts(d.vm) && !d.vm.Spec.VM.Display.TLS.GenerateSecret
	switch {
	case len(needed) == 0 && !certificate:
		return true
	case !looksAhead(d.s.VM):
		return false // the status comes first
	}
	missing := ""
	for _, n := range needed {
		switch d.s.Secrets[n.Name] {
		case SecretThere:
		case SecretOfOtherType:
			missing = fmt.Sprintf("Secret %s of %s has another type than it needs", n.Name, n.Field)
		default:
			missing = fmt.Sprintf("there is no Secret %s of %s", n.Name, n.Field)
		}
	}
	if certificate && len(missingKeys(d.s.Certificate)) > 0 {
		missing = fmt.Sprintf("there is no certificate in Secret %s of spec.vm.display.tls.secretName", d.vm.Spec.VM.Display.TLS.SecretName)
	}
	if missing == "" {
		return true
	}
	d.restartLacks(missing)
	d.wakeAt(d.s.Now.Add(d.secretPause(spec.ConditionAwaitingRestart, spec.ReasonChangesPendingRestart)))
	return false
}

// restartLacks adds to what is said of a restart why it does not come yet. Where a line has
// no room for that, what the change is stands in status.restartAwaitingChanges alone.
func (d *decision) restartLacks(missing string) {
	more := "; " + missing + ": it is restarted when that is there"
	if len(d.awaiting) == 1 && len(d.restart.message)+len(more) > conditions.Line {
		d.restart.message = waitsForStart(d.awaiting[0].Path)
	}
	d.restart.message += more
}
