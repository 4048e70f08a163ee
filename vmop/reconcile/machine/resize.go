package machine

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A growing guest must not use what its pod has not requested, or its next pod may find no node.
// So the pod grows first: it is resized in place, and the runner is granted more only when the
// kubelet has granted it. Shrinking is the reverse: the pod gives back what the runner reports as
// given back by the guest. Where pods are not resized in place, the guest alone grows.

var computedResources = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// findGrant determines what the guest may use. A smaller amount is granted at once, and nothing
// granted is withdrawn.
func (d *decision) findGrant() {
	want := d.wantedAmounts()
	d.grant = want
	r, c := d.resizable()
	if c == nil || d.rigid() != "" {
		return
	}
	had, known := d.granted()
	if !known {
		had = r.Covered(c.Resources.Requests)
	}
	need := r.For(want)
	if want.CPUs > had.CPUs && !d.pod.hasRoom(c, corev1.ResourceCPU, need) {
		d.grant.CPUs = had.CPUs
	}
	if want.RAM > had.RAM && !d.pod.hasRoom(c, corev1.ResourceMemory, need) {
		d.grant.RAM = had.RAM
	}
}

func (d *decision) short() bool { return d.grant != d.wantedAmounts() }

// rigid returns why the pod cannot be resized in place; empty if it can, as far as is known. A
// kubelet that resizes pods reports resources in status.containerStatuses[].resources, and an API
// server without the subresource answers NotFound.
func (d *decision) rigid() string {
	t := reconcile.ResizePod{Name: d.pod.pod.Name}.Target()
	for i := range d.s.Failures {
		if f := &d.s.Failures[i]; f.Target == t && f.Reason == string(metav1.StatusReasonNotFound) {
			return "the API server does not resize pods in place"
		}
	}
	if c := d.pod.container; c != nil && c.State.Running != nil && c.Resources == nil {
		return "node " + d.pod.pod.Spec.NodeName + " does not resize pods in place"
	}
	return ""
}

func (v *podView) hasRoom(c *corev1.Container, name corev1.ResourceName, need corev1.ResourceList) bool {
	asked, wanted := c.Resources.Requests[name], need[name]
	switch {
	case asked.Cmp(wanted) < 0:
		return false
	case v.state == podPending:
		return true // it does not start with less
	case v.container == nil || v.container.Resources == nil:
		return false
	}
	has, pending := v.container.Resources.Requests[name], v.resizePending() != nil
	seen := v.pod.Status.ObservedGeneration
	given := has.Cmp(wanted) >= 0
	if name == corev1.ResourceCPU {
		// It is read from the shares of the control group, which are coarser. Some container
		// runtimes (containerd 1.6) do not report it, and an old value stays.
		given = has.MilliValue()*16 >= wanted.MilliValue()*15
	}
	if seen > 0 {
		// What the kubelet has observed and does not hold back, it has reserved.
		return seen >= v.pod.Generation && (!pending || given && name == corev1.ResourceMemory)
	}
	return given && !pending
}

func (v *podView) resizePending() *corev1.PodCondition {
	for i := range v.pod.Status.Conditions {
		if c := &v.pod.Status.Conditions[i]; c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func (d *decision) resize() {
	r, c := d.resizable()
	if c == nil || d.pod.state != podRunning || d.pod.container == nil || d.pod.container.State.Running == nil || !d.wanted() {
		return
	}
	want := d.wantedAmounts()
	hold := larger(want, d.grant)
	if had, known := d.granted(); known {
		hold = larger(hold, had)
	}
	need := r.For(hold)
	next, grows := corev1.ResourceList{}, false
	for _, name := range computedResources {
		has, wanted := c.Resources.Requests[name], need[name]
		switch order := wanted.Cmp(has); {
		case order > 0:
			next[name], grows = wanted, true
		case order < 0 && d.givenBack(name, hold):
			next[name] = wanted
		}
	}
	if why := d.rigid(); why != "" {
		if grows {
			d.remarks = append(d.remarks, "pod "+d.pod.pod.Name+" asks for more only when it is made anew: "+why)
		}
		return
	}
	if len(next) > 0 {
		if d.resizePod(c.Name, next) && grows {
			d.configuration.setWaiting(spec.ReasonResizing, named(names.KindPod, d.pod.pod.Name), "pod %s is being resized for %s; its node decides: see kubectl describe pod %[1]s", d.pod.pod.Name, amountsText(want))
		}
		if grows {
			return
		}
		// Giving back does not answer the request for more.
	}
	switch pending := d.pod.resizePending(); {
	case !d.short():
	case pending != nil && pending.Reason == corev1.PodReasonInfeasible:
		d.infeasible(pending.Message)
	case pending != nil:
		if d.configuration.setProblem(spec.ReasonResizeDeferred, named(names.KindNode, d.pod.pod.Spec.NodeName),
			"node %s has no room for %s in pod %s now: %s; make room, or ask for less", d.pod.pod.Spec.NodeName, amountsText(want), d.pod.pod.Name, pending.Message) {
			d.configuration.brief = true
			d.configuration.further = "; the guest keeps " + amountsText(d.grant) + " until there is"
		}
	default:
		d.configuration.setWaiting(spec.ReasonResizing, named(names.KindPod, d.pod.pod.Name), "pod %s is being resized for %s; the guest keeps %s until its node has done so: see kubectl describe pod %[1]s",
			d.pod.pod.Name, amountsText(want), amountsText(d.grant))
	}
}

// resizePod reports whether the pod is resized by the plan. A node that has become smaller than its
// pod keeps the pod from giving back, too, which hurts no guest.
func (d *decision) resizePod(container string, requests corev1.ResourceList) bool {
	a := reconcile.ResizePod{
		Name: d.pod.pod.Name, UID: d.pod.pod.UID, ResourceVersion: d.pod.pod.ResourceVersion, Container: container, Requests: requests,
	}
	f := reconcile.Refused(d.s.Failures, a.Target(), d.s.Now)
	if f == nil || !f.Infeasible {
		return d.do(a, &d.configuration)
	}
	d.wakeAt(f.RetryAt())
	why := f.Message
	if _, cause, is := strings.Cut(why, " is forbidden: "); is {
		why = cause // what comes before is the pod
	}
	if d.short() {
		d.infeasible(why)
	} else {
		d.remarks = append(d.remarks, "pod "+d.pod.pod.Name+" keeps what it asked for: "+why)
	}
	return false
}

// infeasible reports that the node is too small, as the kubelet or the API server explains.
func (d *decision) infeasible(why string) {
	if d.configuration.setProblem(spec.ReasonResizeInfeasible, named(names.KindNode, d.pod.pod.Spec.NodeName),
		"node %s can never give pod %s room for %s: %s; ask for less, or start the machine anew",
		d.pod.pod.Spec.NodeName, d.pod.pod.Name, amountsText(d.wantedAmounts()), why) {
		d.configuration.further = "; the guest keeps " + amountsText(d.grant) + ", and another node may have more for its next start"
	}
}

// givenBack reports whether, by the runner's report, its guest uses no more of a resource than an
// amount: the runner follows the present specification, which gives no more, and the guest has
// followed it.
func (d *decision) givenBack(name corev1.ResourceName, to objects.Amounts) bool {
	if cm := d.s.ConfigMap; cm == nil || d.unmade || !d.executing() || d.followed() < d.s.VM.Generation {
		return false
	}
	if name == corev1.ResourceCPU {
		return int64(d.stored.CPUs) <= to.CPUs
	}
	// A balloon moves by pages.
	const page = 4096
	return d.stored.RAM != nil && spec.Bytes(*d.stored.RAM) < to.RAM+page
}

// followed returns the generation of the specification that the runner follows, as it reports
// with every adjusted part; 0 if unknown.
func (d *decision) followed() int64 {
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionCPUsAdjusted)
	if c == nil {
		return 0
	}
	return c.ObservedGeneration
}

// lags reports whether the runner does not know the specification of its machine yet.
func (d *decision) lags() bool {
	follows := d.followed()
	return follows > 0 && follows < d.s.VM.Generation && d.executing() && d.wanted()
}

// judgeRunner waits for the runner to read a change: until then its conditions are about the
// former specification.
func (d *decision) judgeRunner() {
	if d.lags() {
		d.configuration.setWaiting(spec.ReasonConfigurationPending, named(names.KindPod, d.pod.pod.Name),
			"the runner in pod %s does not know of generation %d yet, it follows generation %d; see the log of the pod if this lasts", d.pod.pod.Name, d.s.VM.Generation, d.followed())
	}
}

func larger(a, b objects.Amounts) objects.Amounts {
	return objects.Amounts{CPUs: max(a.CPUs, b.CPUs), RAM: max(a.RAM, b.RAM)}
}

func amountsText(a objects.Amounts) string {
	if a.CPUs == 1 {
		return "1 CPU and " + bytesText(a.RAM)
	}
	return fmt.Sprintf("%d CPUs and %s", a.CPUs, bytesText(a.RAM))
}
