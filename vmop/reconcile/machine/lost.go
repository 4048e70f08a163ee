package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// lost reports whether the machine's state is unknown because the node of its pod does not
// report.
func (d *decision) lost() bool {
	switch d.pod.state {
	case podRunning:
		return d.pod.silent()
	case podTerminating:
		return !finished(d.pod.pod) && (d.pod.silent() || d.overdue())
	}
	return false
}

// overdue reports whether the container of a terminating pod is still said to run when it should
// have ended. The pods of a node that was not ready when it went silent look so: the node
// controller marks only those of a node that was (MarkPodsNotReady in
// k8s.io/kubernetes/pkg/controller/nodelifecycle).
func (d *decision) overdue() bool {
	return d.pod.container != nil && d.pod.container.State.Running != nil && !d.s.Now.Before(stuckAt(d.pod.pod))
}

const stuckAfter = time.Minute

// stuckAt is when a terminating pod should have been deleted.
func stuckAt(pod *corev1.Pod) time.Time { return pod.DeletionTimestamp.Add(stuckAfter) }
