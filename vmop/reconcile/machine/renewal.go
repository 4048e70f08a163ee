package machine

import (
	"encoding/json"
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
)

// restartAsked reports whether somebody has asked for the end of the pod that there
// is: the request is another one than when it was made.
func (d *decision) restartAsked() bool {
	request := d.s.VM.Annotations[names.AnnotationPowerRequest]
	return verbOf(request) == VerbRestart && d.pod.exists() && d.pod.pod.Annotations[names.AnnotationPowerRequest] != request
}

// findRenewal finds out whether the machine's pod is to be replaced though it runs,
// because somebody has asked for that, or because changes wait and need nobody's
// approval. It goes on while a next pod could not start.
func (d *decision) findRenewal() {
	if d.pod.state != podRunning || d.pod.silent() || !d.wanted() || !d.replaceable() {
		return
	}
	asked := d.restartAsked()
	d.restarts = asked || d.renewsItself()
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

// renewsItself reports whether changes that wait for a restart cause it. They do so
// once: the next pod is made for the present specification. Those of a class alone
// do not.
func (d *decision) renewsItself() bool {
	if !d.vm.Spec.RestartsAutomatically() || len(d.awaiting) == 0 {
		return false
	}
	if d.renewed {
		return true // the next pod has the new content, of which its runner says nothing any more
	}
	var then startedManifest
	return json.Unmarshal([]byte(d.pod.pod.Annotations[names.AnnotationStarted]), &then) == nil &&
		then.Generation > 0 && then.Generation < d.s.VM.Generation && then.Spec != nil && d.changedItself(&then)
}
