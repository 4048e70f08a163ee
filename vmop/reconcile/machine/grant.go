package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
)

func (d *decision) granted() (a objects.Amounts, known bool) {
	cm := d.s.ConfigMap
	if cm == nil || !d.ours(cm) {
		return a, false
	}
	if d.noted == nil {
		d.noted = &notedGrant{}
		d.noted.amounts, d.noted.known = objects.ParseAmounts(cm.Annotations[names.AnnotationGranted])
	}
	return d.noted.amounts, d.noted.known
}

// resizable returns how the requests of the machine's pod follow from what its guest may use, and
// the container that has them; nil for a pod that does not change with its guest, or has none any
// more.
func (d *decision) resizable() (objects.Requests, *corev1.Container) {
	if d.recorded == nil {
		d.recorded = &recordedRequests{}
		if d.pod.exists() && !finished(d.pod.pod) {
			var recorded bool
			if d.recorded.requests, recorded = objects.RecordedRequests(d.pod.pod); recorded {
				d.recorded.container = runnerContainer(d.pod.pod, d.vm.Name)
			}
		}
	}
	return d.recorded.requests, d.recorded.container
}
