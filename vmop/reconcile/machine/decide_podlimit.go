package machine

import (
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// judgeLimit warns of a memory limit below what the guest may use, because of which the kernel
// would kill QEMU. A LimitRange of the namespace may have set it.
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
	guest, overhead := d.memoryNeed()
	if limit.CmpInt64(guest+overhead) >= 0 {
		return
	}
	if d.configuration.setProblem(spec.ReasonMemoryLimitTooLow, named(names.KindPod, d.pod.pod.Name),
		"pod %s may use %s of memory, but its guest has %s and QEMU needs up to %s; %s",
		d.pod.pod.Name, limit.String(), bytesText(guest), bytesText(overhead), d.raiseLimit(corev1.ResourceMemory)) {
		d.configuration.further = ": what uses more than its limit is killed"
	}
}

// memoryNeed returns what the pod uses if its guest uses all its RAM, in bytes: the RAM, and what
// QEMU and the runner need besides.
func (d *decision) memoryNeed() (guest, overhead int64) {
	r, recorded := objects.RecordedRequests(d.pod.pod)
	if !recorded {
		in := d.podInput()
		r = objects.NewRequests(d.vm, &d.s.Settings, &in)
	}
	return min(objects.GuestAmounts(d.vm).RAM, r.Maximum.RAM), r.Overhead
}

func (d *decision) explainOOM(e *podEnd) {
	if e.cause != reasonOOMKilled {
		return
	}
	guest, overhead := d.memoryNeed()
	need := bytesText(guest + overhead)
	if c := runnerContainer(d.pod.pod, d.vm.Name); c != nil {
		if limit, limited := c.Resources.Limits[corev1.ResourceMemory]; limited {
			e.message = fmt.Sprintf("its memory limit of %s was used up, and it needs up to %s", limit.String(), need)
			e.advice = d.raiseLimit(corev1.ResourceMemory)
			return
		}
	}
	e.message = fmt.Sprintf("its node ran out of memory, and it needs up to %s", need)
	e.advice = "raise spec.resources.requests.memory, or move other pods away"
}
