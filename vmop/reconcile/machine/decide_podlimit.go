package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limited reports whether the pod has or is to have limits: one was refused
// without them. A pod that exists keeps what it was made with.
func (d *decision) limited() bool {
	if d.pod.exists() {
		r, _ := objects.RecordedRequests(d.pod.pod)
		return r.Limited
	}
	create := reconcile.Target{Verb: "create", Kind: names.KindPod, Name: d.nextPod()}
	return slices.ContainsFunc(d.s.Failures, func(f reconcile.Failure) bool { return f.Target == create && f.WantsLimits() })
}

// computesRequests reports whether the manifest leaves it to the operator what the
// pod asks for.
func (d *decision) computesRequests() bool {
	_, computed := objects.RecordedRequests(d.plainPod())
	return computed
}

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
	if d.configuration.problem(spec.ReasonMemoryLimitTooLow, named(names.KindPod, d.pod.pod.Name),
		"pod %s may use %s of memory, but its guest has %s and QEMU needs up to %s; %s",
		d.pod.pod.Name, limit.String(), bytesText(guest), bytesText(r.Overhead), d.raiseLimit(corev1.ResourceMemory)) {
		d.configuration.further = ": what uses more than its limit is killed"
	}
}

// limitBelow explains that a pod was refused because it may not use what it is to ask
// for.
func (d *decision) limitBelow(f *reconcile.Failure, about *finding) {
	reason, r := spec.ReasonWriteRefused, corev1.ResourceName(f.LimitBelow())
	if r == corev1.ResourceMemory {
		reason = spec.ReasonMemoryLimitTooLow
	}
	why := strings.TrimSpace(f.Message)
	if _, value, quoted := strings.Cut(why, "Invalid value: "); quoted {
		why = value // what comes before is the path of the field, and the pod
	}
	if about.problem(reason, named(f.Target.Kind, f.Target.Name), "%s: %s; %s", f.Target, why, d.raiseLimit(r)) {
		about.further = ": the pod asks for what its guest has and QEMU needs; it is tried again within half a minute"
	}
}

// raiseLimit says where a limit of the runner's container comes from, and what to do.
func (d *decision) raiseLimit(r corev1.ResourceName) string {
	if given := d.vm.Spec.Resources; given != nil {
		if _, ok := given.Limits[r]; ok {
			return fmt.Sprintf("raise spec.resources.limits.%s", r)
		}
	}
	return fmt.Sprintf("raise the default for %s of the namespace's LimitRange, or set spec.resources", r)
}

// bytesText is a number of bytes for people, as manifests have it.
func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
