package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// judgeLimit warns of a limit of memory that the machine meets when its guest uses
// what it has: the kernel kills QEMU then. A LimitRange of the namespace may have
// given it to the pod.
func (d *decision) judgeLimit() {
	if d.pod.state != podPending && d.pod.state != podRunning || !d.wanted() {
		return
	}
	c := runnerContainer(d.pod.pod, d.vm.Name)
	if c == nil {
		return
	}
	limit, limited := c.Resources.Limits[corev1.ResourceMemory]
	if !limited {
		return
	}
	r, recorded := objects.RecordedRequests(d.pod.pod)
	if !recorded {
		in := d.podInput()
		r = objects.NewRequests(d.vm, &d.s.Settings, &in)
	}
	guest := min(objects.GuestAmounts(d.vm).RAM, r.Maximum.RAM)
	if limit.CmpInt64(guest+r.Overhead) >= 0 {
		return
	}
	if d.configuration.setProblem(spec.ReasonMemoryLimitTooLow, named(names.KindPod, d.pod.pod.Name),
		"pod %s may use %s of memory, but its guest has %s and QEMU needs up to %s; %s",
		d.pod.pod.Name, limit.String(), bytesText(guest), bytesText(r.Overhead), d.raiseLimit(corev1.ResourceMemory)) {
		d.configuration.further = ": what uses more than its limit is killed"
	}
}
