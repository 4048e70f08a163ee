package machine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) refused(f *reconcile.Failure, about *finding) {
	why, object := strings.TrimSpace(f.Message), named(f.Target.Kind, f.Target.Name)
	switch {
	case f.NamespaceGoes:
		about.inherit(finding{})
		about.setFalse(spec.ReasonNamespaceTerminating, "namespace %s is being deleted, and the machine with it; nothing is made in it any more", d.vm.Namespace)
	case f.WantsLimits() && strings.Contains(why, "must specify") && f.Target.Verb == "create" && d.computesRequests():
		about.setWaiting(spec.ReasonQuotaExceeded, object, "%s: %s; it is made with limits", f.Target, why)
	case f.Quota() && strings.Contains(why, "must specify"):
		about.setProblem(spec.ReasonQuotaExceeded, object, "%s: %s; name that in spec.resources", f.Target, why)
	case f.Quota():
		if about.setProblem(spec.ReasonQuotaExceeded, object, "%s: %s; raise the quota or free some of it", f.Target, why) {
			about.further = "; it is tried again within half a minute"
		}
	case f.LimitBelow() != "":
		d.limitBelow(f, about)
	case f.Reason == string(metav1.StatusReasonForbidden) && (d.mayNotDelete(f, about) || d.unprepared(why, about)):
	case f.Reason == string(metav1.StatusReasonForbidden):
		about.setProblem(spec.ReasonWriteRefused, object, "%s: %s; check the rights of the operator and the policies of the namespace", f.Target, why)
	default:
		about.setProblem(spec.ReasonWriteRefused, object, "%s: %s: %s; it is tried again", f.Target, f.Reason, why)
	}
}

func (d *decision) mayNotDelete(f *reconcile.Failure, about *finding) bool {
	if f.Target.Verb != "delete" || f.Target.Kind != names.KindClaim { // a secret is kept then
		return false
	}
	namespace, user := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault), "OPERATOR"
	if _, u, ok := strings.Cut(f.Message, ` is forbidden: User "`); ok {
		if u, _, ok = strings.Cut(u, `" cannot `); ok && !strings.ContainsAny(u, " '\"\n\\$`;&|") {
			user = u
		}
	}
	if about.setProblem(spec.ReasonNamespaceNotPrepared, named(kindRoleBinding, names.ClaimsBinding),
		"%s: the operator may not; make role binding %s as deploy/components/delete-claims does, or set spec.deletionPolicy to Retain", f.Target, names.ClaimsBinding) {
		about.further = fmt.Sprintf("; run: %s; or: kubectl patch vm %s -n %s --type=merge -p '{\"spec\":{\"deletionPolicy\":\"Retain\"}}'",
			bindCleaner(namespace, user), d.vm.Name, namespace)
	}
	return true
}

func (d *decision) limitBelow(f *reconcile.Failure, about *finding) {
	reason, r := spec.ReasonWriteRefused, corev1.ResourceName(f.LimitBelow())
	if r == corev1.ResourceMemory {
		reason = spec.ReasonMemoryLimitTooLow
	}
	why := strings.TrimSpace(f.Message)
	if _, value, quoted := strings.Cut(why, "Invalid value: "); quoted {
		why = value // what comes before is the path of the field, and the pod
	}
	if about.setProblem(reason, named(f.Target.Kind, f.Target.Name), "%s: %s; %s", f.Target, why, d.raiseLimit(r)) {
		about.further = ": the pod asks for what its guest has and QEMU needs; it is tried again within half a minute"
	}
}

func (d *decision) raiseLimit(r corev1.ResourceName) string {
	if given := d.vm.Spec.Resources; given != nil {
		if _, ok := given.Limits[r]; ok {
			return fmt.Sprintf("raise spec.resources.limits.%s", r)
		}
	}
	return fmt.Sprintf("raise the default for %s of the namespace's LimitRange, or set spec.resources", r)
}

// unprepared explains a refusal, by the API server's message, because the namespace lacks the
// account of machines' pods or the operator's rights.
func (d *decision) unprepared(why string, about *finding) bool {
	namespace := cmp.Or(d.vm.Namespace, metav1.NamespaceDefault)
	if strings.Contains(why, fmt.Sprintf("serviceaccount %q not found", names.ServiceAccount)) {
		about.setProblem(spec.ReasonNamespaceNotPrepared, named(kindServiceAccount, names.ServiceAccount),
			"there is no service account; run: %s && %s", createAccount(namespace), bindRunner(namespace))
		return true
	}
	_, user, refused := strings.Cut(why, ` is forbidden: User "`)
	user, what, quoted := strings.Cut(user, `" cannot `) // such as: create resource "pods" in API group "" in the namespace "apps"
	if !refused || !quoted || !strings.Contains(what, "in the namespace") || strings.ContainsAny(user, " '\"\n\\$`;&|") {
		return false
	}
	about.setProblem(spec.ReasonNamespaceNotPrepared, named(kindRoleBinding, names.OperatorBinding),
		"the operator lacks a role binding; run: %s", bindOperator(namespace, user))
	return true
}
