package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restartAsked reports whether a restart of the existing pod is requested: the request differs
// from that when the pod was made.
func (d *decision) restartAsked() bool {
	request := d.s.VM.Annotations[names.AnnotationPowerRequest]
	return verbOf(request) == VerbRestart && d.pod.exists() && d.pod.pod.Annotations[names.AnnotationPowerRequest] != request
}

// findRenewal determines whether the running pod is to be replaced, because of a request or of
// waiting changes that need no approval. The pod stays while a next one could not start.
func (d *decision) findRenewal() {
	if !d.renewable() {
		return
	}
	asked := d.restartAsked()
	if !d.replaceable() {
		d.findHeld()
		// Other obstacles pass by themselves, or are reported where they are found.
		if see := d.lackingFor(); see != "" && d.renewsItself() {
			d.restartLacks("something is missing, see condition " + see)
		}
		return
	}
	d.restarts = asked || d.renewsItself() && d.startsAgain()
	if !d.restarts || d.executedIn() != "" {
		return // reported when it is done
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

func (d *decision) replaceable() bool { return d.startsNext() && !d.volumeAwaited() }

// startsNext reports whether a next pod of a running machine could be made.
func (d *decision) startsNext() bool {
	return !d.unmade && !d.unsuitable && !d.unfit() && !d.short() && !d.lacks
}

// volumeAwaited reports whether a claim, as that of a new disk, has no volume and may get one without
// a next pod. Where a storage class has no provisioner at work yet, the next pod may be what it
// waits for (volumeBindingMode: WaitForFirstConsumer).
func (d *decision) volumeAwaited() bool {
	for i := range d.claims {
		pvc := d.claims[i].found
		if pvc == nil || pvc.Status.Phase == corev1.ClaimBound {
			continue
		}
		// Kubernetes names the provisioner when it begins.
		begun := slices.ContainsFunc(names.AnnotationsProvisioner, func(key string) bool { return pvc.Annotations[key] != "" })
		if class := pvc.Spec.StorageClassName; begun || class == nil || *class == "" {
			return true
		}
	}
	return false
}

// findHeld finds why a restart that was asked for does not come, if that is not only what the
// operator itself is about to write.
func (d *decision) findHeld() {
	if !d.renewable() || !d.restartAsked() {
		return
	}
	var why finding
	for _, f := range []finding{d.unfitness(), d.devices, d.provisioning, d.configuration} {
		if !f.ok() && (why.reason == "" || f.warning && !why.warning) {
			why = f
		}
	}
	switch {
	case why.warning:
	case d.lacks:
		why = finding{reason: spec.ReasonProvisioningNotReady, message: "a Secret that the guest is provisioned from, or a key in it, is gone", warning: true}
	case d.short():
		// As it was found when the pod was resized, which follows later.
		why = finding{reason: spec.ReasonResizing, message: "the pod is being resized for its guest"}
		if c := spec.FindCondition(d.stored.Conditions, spec.ConditionConfigurationApplied); c != nil && c.Status == metav1.ConditionFalse {
			switch c.Reason {
			case spec.ReasonResizeDeferred, spec.ReasonResizeInfeasible, spec.ReasonQuotaExceeded:
				why = finding{reason: c.Reason, message: c.Message, warning: true}
			}
		}
	}
	if why.reason != "" {
		d.heldBack = &why
	}
}

// renewable reports whether the machine runs in a pod that could be replaced.
func (d *decision) renewable() bool {
	return d.pod.state == podRunning && !d.pod.silent() && d.wanted()
}

const restartWaits = "the restart that was asked for waits: "

// RestartHeldBack returns why a machine runs on although a restart was asked for, by its status, and
// whether it does until somebody has repaired something; why is empty if nothing keeps it from that.
func RestartHeldBack(vm *spec.VirtualMachine) (why string, blocked bool) {
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
	if c == nil || c.Reason != spec.ReasonRestartPending && c.Reason != spec.ReasonRestartBlocked {
		return "", false
	}
	if _, after, found := strings.Cut(c.Message, restartWaits); found {
		return after, c.Reason == spec.ReasonRestartBlocked
	}
	return c.Message, c.Reason == spec.ReasonRestartBlocked
}

// saysHeld returns the reason and the message of a pod that runs on although a restart was asked
// for; the message begins with text.
func (d *decision) saysHeld(text string) (reason, message string) {
	reason = spec.ReasonRestartPending
	if d.heldBack.warning {
		reason = spec.ReasonRestartBlocked
	}
	if message = text + "; " + restartWaits + d.heldBack.message; len(message) > conditions.Line {
		why, _ := conditions.Fit(d.heldBack.message, len(restartWaits))
		message = restartWaits + why
	}
	return reason, message
}

func (d *decision) lackingFor() string {
	switch {
	case d.unfit():
		return spec.ConditionVirtualMachineClassReady
	case d.devices.warning:
		return spec.ConditionBlockDevicesReady
	}
	return ""
}

// renewsItself reports whether waiting changes cause the restart. They do so once: the next pod
// is made for the present specification. Changes of a class alone do not.
func (d *decision) renewsItself() bool {
	if !d.vm.Spec.RestartsAutomatically() || len(d.awaiting) <= d.unplugged {
		return false
	}
	if d.renewed {
		return true // the next pod has the new content, and its runner no longer reports a change
	}
	then := startedWith(d.pod.pod.Annotations[names.AnnotationStarted])
	return then != nil && then.Generation > 0 && then.Generation < d.s.VM.Generation && d.changedItself(then)
}

// startsAgain reports whether the Secrets exist that a next pod needs. They are not watched, and
// are read when the status says that changes wait. While one is missing, the machine runs on and
// reports it.
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

// restartLacks adds to the message about a restart why it does not come yet. Where a line has no
// room for that, what the change is, and then which it is, is in status.restartAwaitingChanges alone.
func (d *decision) restartLacks(missing string) {
	more := "; " + missing + ": it is restarted when that is there"
	if len(d.awaiting) == 1 {
		for _, shorter := range []string{waitsForStart(d.awaiting[0].Path), "a change waits for the next start of the machine"} {
			if len(d.restart.message)+len(more) > conditions.Line {
				d.restart.message = shorter
			}
		}
	}
	d.restart.message += more
}
