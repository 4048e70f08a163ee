package machine

import (
	"github.com/vmop/sdk/vmop/spec"
)

// finished handles a pod that has ended by itself. Its end is written to the status first and
// acted upon when it is observed there.
func (d *decision) finished() {
	pod := d.pod.pod
	noted := d.stored.LastEnd != nil && d.stored.LastEnd.PodUID == pod.UID
	if !noted {
		d.note()
	}
	if !d.wanted() && (noted || d.vm.Spec.RunPolicy == "") {
		d.deleteEnded()
		d.running.setFalse(spec.ReasonMachineStopped, "%s", d.stoppedBecause())
		return
	}
	switch {
	case !noted:
		d.running.setFalse(spec.ReasonPodFinished, "pod %s has ended: %s: %s", pod.Name, d.end.Cause, d.end.Message)
	case d.poweredOff():
		d.stop()
	case d.invalid:
		d.running.setProblem(d.configuration.reason, d.machine(), "pod %s has ended, and the specification is not valid or not allowed; see condition %s",
			pod.Name, spec.ConditionConfigurationApplied)
	case d.delayed():
		// Until then the pod keeps its log.
	default:
		d.deleteEnded()
		d.running.setFalse(spec.ReasonPodFinished, "pod %s has ended: %s: %s", pod.Name, d.end.Cause, d.end.Message)
	}
}
