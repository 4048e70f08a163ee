package machine

import (
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
)

// The kubelet writes what it knows of a ConfigMap into a pod whenever the pod has changed, and else
// every minute or two. After an outage of the API server it learns of changes of a ConfigMap later
// than of those of the pod: the change that was to tell of another ConfigMap was in vain then.
// While the runner does not follow, the pod is changed again, in pauses that double: not for ever,
// because a runner may not follow for other reasons.
const (
	refreshPause = 5 * time.Second
	refreshes    = 6 // for five minutes in all
)

// refresh returns the value of [names.AnnotationRefreshed] for the pod: with another version of the
// ConfigMap, and when the kubelet is to write its files once more. It is empty otherwise.
func (d *decision) refresh() string {
	version, pod := d.s.ConfigMap.ResourceVersion, d.pod.pod
	if pod.Annotations[names.AnnotationConfigVersion] != version {
		return refreshed{version, 0, d.s.Now}.String()
	}
	if !d.lags() {
		return ""
	}
	r := refreshedOf(pod)
	if r.version != version {
		r = refreshed{version: version} // it was told by an operator that noted no time
	}
	if r.times >= refreshes {
		return ""
	}
	if due := r.last.Add(refreshPause << r.times); d.s.Now.Before(due) && !r.last.After(d.s.Now) {
		d.wakeAt(due)
		return ""
	}
	return refreshed{version, r.times + 1, d.s.Now}.String()
}

// refreshed is a value of [names.AnnotationRefreshed].
type refreshed struct {
	version string
	// times is how often the pod was changed since it was told of the version.
	times int
	last  time.Time
}

// String is its text.
func (r refreshed) String() string {
	return fmt.Sprintf("%s %d %s", r.version, r.times, r.last.UTC().Format(time.RFC3339))
}

// refreshedOf is what a pod has; nothing if it has none, or what others wrote.
func refreshedOf(pod *corev1.Pod) (r refreshed) {
	var at string
	_, err := fmt.Sscan(pod.Annotations[names.AnnotationRefreshed], &r.version, &r.times, &at)
	if err == nil {
		r.last, err = time.Parse(time.RFC3339, at)
	}
	if err != nil || r.times < 0 || r.times > refreshes {
		return refreshed{}
	}
	return r
}
