package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runnerImage determines whether the machine runs with the image of its next start. A difference
// is nothing to wait for: it runs on.
func (d *decision) runnerImage() finding {
	wanted := objects.RunnerImage(d.vm, &d.s.Settings)
	has := wanted
	if d.pod.exists() && !finished(d.pod.pod) {
		if c := runnerContainer(d.pod.pod, d.vm.Name); c != nil {
			has = cmp.Or(c.Image, wanted)
		}
	}
	if has == wanted {
		return finding{status: metav1.ConditionTrue, reason: spec.ReasonUpToDate, message: "the image of the runner is " + wanted}
	}
	var versions []string
	if v := d.stored.RunnerVersion; v != "" {
		versions = append(versions, "runner "+v)
	}
	if v := d.stored.Versions; v != nil && v.QEMU != "" {
		versions = append(versions, "QEMU "+v.QEMU)
	}
	with := has
	if len(versions) > 0 {
		with += " (" + strings.Join(versions, ", ") + ")"
	}
	return finding{status: metav1.ConditionFalse, reason: spec.ReasonOtherImage,
		message: fmt.Sprintf("the machine runs with the image %s; its next start has %s", with, wanted)}
}

// reportsWithin is how long a runner may take from the start of its container to its first
// report, which it sends before it opens any disk.
const reportsWithin = 30 * time.Second

// unheard reports whether the runner of a running pod should have reported by now and has not.
func (d *decision) unheard() bool {
	c := d.pod.container
	if c == nil || c.State.Running == nil || c.State.Running.StartedAt.IsZero() || !d.reportedStopped() {
		return false
	}
	since := c.State.Running.StartedAt.Time
	if at := d.adopted(); at.After(since) {
		since = at // its reports about this machine begin then
	}
	if r := spec.FindCondition(d.stored.Conditions, spec.ConditionRunning); r != nil && r.Reason == spec.ReasonVMStopped && r.LastTransitionTime.After(since) {
		return false // it has reported the end; the kubelet's report follows
	}
	if late := since.Add(reportsWithin); d.s.Now.Before(late) {
		d.wakeAt(late)
		return false
	}
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	if d.running.setProblem(spec.ReasonRunnerNotReporting, named(names.KindPod, d.pod.pod.Name),
		"the runner in pod %[1]s runs since %[2]s and has not reported: it may not, a network policy is in the way, or it hangs; see kubectl logs %[1]s",
		d.pod.pod.Name, since.UTC().Format(time.RFC3339)) {
		d.running.further = fmt.Sprintf(" -n %[2]s; whether it may: kubectl auth can-i patch vms.%[1]s --subresource=status -n %[2]s --as=system:serviceaccount:%[2]s:%[3]s; to let it: %[4]s",
			names.Group, namespace, names.ServiceAccount, bindRunner(namespace))
	}
	return true
}

func (d *decision) findRepository() {
	if !d.wanted() || d.s.ImageRepository != nil {
		return
	}
	field := d.repositoryField()
	if field == "" {
		return
	}
	if d.pod.state != podPending && d.pod.state != podRunning {
		d.unmade = true // its pod would wait for the claim
	}
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	d.devices.setProblem(spec.ReasonImageRepositoryNotFound, named(names.KindClaim, names.ImageRepositoryClaim),
		"namespace %s has no claim %s, which %s is in; run: %s", namespace, names.ImageRepositoryClaim, field, createRepository(namespace))
}

func (d *decision) repositoryField() string {
	if fields := machineconfig.RepositoryFiles(d.vm); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
