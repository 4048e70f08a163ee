package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runnerImage finds out whether the machine runs with the image that its next
// start would have. That is nothing to wait for: it runs on.
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

// reportsWithin is how long a runner may take from the start of its container to
// its first report. It reports before it looks at any disk.
const reportsWithin = 30 * time.Second

// unheard reports whether the runner of a pod that runs should have reported by now
// and has not.
func (d *decision) unheard() bool {
	c := d.pod.container
	if c == nil || c.State.Running == nil || c.State.Running.StartedAt.IsZero() || !d.reportedStopped() {
		return false
	}
	since := c.State.Running.StartedAt.Time
	if at := d.adopted(); at.After(since) {
		since = at // its reports to this machine begin then
	}
	if r := spec.FindCondition(d.stored.Conditions, spec.ConditionRunning); r != nil && r.Reason == spec.ReasonVMStopped && r.LastTransitionTime.After(since) {
		return false // it has reported the end, which the kubelet is about to show
	}
	if late := since.Add(reportsWithin); d.s.Now.Before(late) {
		d.wakeAt(late)
		return false
	}
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	if d.running.problem(spec.ReasonRunnerNotReporting, named(names.KindPod, d.pod.pod.Name),
		"the runner in pod %[1]s runs since %[2]s and has not reported: it may not, a network policy is in the way, or it hangs; see kubectl logs %[1]s",
		d.pod.pod.Name, since.UTC().Format(time.RFC3339)) {
		d.running.further = fmt.Sprintf(" -n %[2]s; whether it may: kubectl auth can-i patch vms.%[1]s --subresource=status -n %[2]s --as=system:serviceaccount:%[2]s:%[3]s; to let it: %[4]s",
			names.Group, namespace, names.ServiceAccount, bindRunner(namespace))
	}
	return true
}

// Kinds of objects that a namespace may lack.
const (
	kindServiceAccount = "ServiceAccount"
	kindRoleBinding    = "RoleBinding"
)

// The commands that docs/install.md has for a namespace.
func createAccount(namespace string) string {
	return "kubectl create serviceaccount " + names.ServiceAccount + " -n " + namespace
}

func bindRunner(namespace string) string {
	return fmt.Sprintf("kubectl create rolebinding vmop-machines-runner -n %[1]s --clusterrole=vmop-runner --serviceaccount=%[1]s:%[2]s", namespace, names.ServiceAccount)
}

func bindOperator(namespace, user string) string {
	return "kubectl create rolebinding " + names.OperatorBinding + " -n " + namespace + " --clusterrole=vmop-operator-machines " + asSubject(user)
}

// asSubject names a user to kubectl create rolebinding.
func asSubject(user string) string {
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		return "--serviceaccount=" + account
	}
	return "--user=" + user
}

func createRepository(namespace string) string {
	return "kubectl apply -n " + namespace + " -k github.com/vmop/sdk/deploy/image-repository"
}

// unprepared explains a refusal that is because of what the namespace lacks: the
// message of the API server names it. It is the account of machines' pods, or the
// operator's rights.
func (d *decision) unprepared(why string, about *finding) bool {
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	if strings.Contains(why, fmt.Sprintf("serviceaccount %q not found", names.ServiceAccount)) {
		about.problem(spec.ReasonNamespaceNotPrepared, named(kindServiceAccount, names.ServiceAccount),
			"there is no service account; run: %s && %s", createAccount(namespace), bindRunner(namespace))
		return true
	}
	_, user, refused := strings.Cut(why, ` is forbidden: User "`)
	user, what, quoted := strings.Cut(user, `" cannot `) // such as: create resource "pods" in API group "" in the namespace "apps"
	if !refused || !quoted || !strings.Contains(what, "in the namespace") || strings.ContainsAny(user, " '\"\n\\$`;&|") {
		return false
	}
	about.problem(spec.ReasonNamespaceNotPrepared, named(kindRoleBinding, names.OperatorBinding),
		"the operator lacks a role binding; run: %s", bindOperator(namespace, user))
	return true
}

// findRepository judges the image repository of a machine that names a file in it.
func (d *decision) findRepository() {
	if !d.wanted() || d.s.ImageRepository != nil {
		return
	}
	field := d.repositoryField()
	if field == "" {
		return
	}
	if d.pod.state != podPending && d.pod.state != podRunning {
		d.unmade = true // there would be a pod that waits for it
	}
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	d.devices.problem(spec.ReasonImageRepositoryNotFound, named(names.KindClaim, names.ImageRepositoryClaim),
		"namespace %s has no claim %s, which %s is in; run: %s", namespace, names.ImageRepositoryClaim, field, createRepository(namespace))
}
