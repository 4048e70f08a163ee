package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NeededSecret is a Secret that the guest of a machine is provisioned from.
type NeededSecret struct {
	Name string
	// Types are the allowed types; none means any.
	Types []string
	// Field is the manifest's field that names it.
	Field string
}

// NeededSecrets returns the Secrets whose states [Snapshot.Secrets] must have, for a machine that
// is to start, or that changes are about to restart; otherwise none. pod is [Snapshot.Pod].
func NeededSecrets(vm *spec.VirtualMachine, pod *corev1.Pod) []NeededSecret {
	if pod != nil && !looksAhead(vm) || staysStopped(vm) || vm.DeletionTimestamp != nil {
		return nil
	}
	return neededSecrets(&vm.Spec)
}

// looksAhead reports whether changes wait, by the status, for a restart that needs no approval:
// what the next pod needs is read while the current one runs.
func looksAhead(vm *spec.VirtualMachine) bool {
	return vm.Spec.RestartsAutomatically() && spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionAwaitingRestart)
}

func staysStopped(vm *spec.VirtualMachine) bool {
	return vm.Spec.VM.State != spec.StateRunning && vm.Spec.RunPolicy == ""
}

func neededSecrets(s *spec.VirtualMachineSpec) []NeededSecret {
	var out []NeededSecret
	if c := s.CloudInit; c != nil {
		for _, from := range []struct {
			field  string
			source *spec.CloudInitSource
		}{{"metaDataFrom", c.MetaDataFrom}, {"userDataFrom", c.UserDataFrom}, {"networkConfigFrom", c.NetworkConfigFrom}} {
			if from.source == nil || slices.ContainsFunc(out, func(n NeededSecret) bool { return n.Name == from.source.SecretRef.Name }) {
				continue
			}
			out = append(out, NeededSecret{Name: from.source.SecretRef.Name, Field: "spec.cloudInit." + from.field + ".secretRef"})
		}
	}
	if ref := s.Provisioning.Secret(); ref != nil {
		field := "spec.provisioning.userDataRef"
		if s.HasAnswerCD() {
			field = "spec.provisioning.sysprepRef"
		}
		out = append(out, NeededSecret{Name: ref.Name, Types: s.Provisioning.Type.SecretTypes(), Field: field})
	}
	return out
}

// findProvisioning keeps a machine from being started without the Secrets that its guest is
// provisioned from: its first start would lack them, or fail. Their content is judged by the
// runner.
func (d *decision) findProvisioning() {
	if warning := spec.ProvisioningWarning(&d.vm.Spec); warning != "" {
		d.warnOfUserData(warning)
		return
	}
	needed := neededSecrets(&d.vm.Spec)
	switch {
	case len(needed) == 0:
		d.provisioning.setTrue(spec.ReasonProvisioningReady, "the guest is provisioned from no Secret")
		return
	case d.pod.state == podAbsent && !d.wanted():
		d.provisioning = finding{status: metav1.ConditionUnknown, reason: spec.ReasonMachineStopped,
			message: "the Secrets that the guest is provisioned from are looked for when the machine starts"}
		return
	case d.pod.state == podAbsent:
		for _, n := range needed {
			d.needSecret(n)
		}
	}
	d.provisioning.setTrue(spec.ReasonProvisioningReady, "the Secrets that the guest is provisioned from are there")
}

func (d *decision) warnOfUserData(warning string) {
	d.provisioning.setTrue(spec.ReasonProvisioningReadyWithWarnings, "spec.provisioning.userData "+warning+"; the machine is started with it nevertheless")
	if c := spec.FindCondition(d.stored.Conditions, spec.ConditionProvisioningReady); d.wanted() && (c == nil || c.Reason != d.provisioning.reason) {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: d.provisioning.reason, Action: "Provision", Note: d.provisioning.message,
		})
	}
}

func (d *decision) needSecret(n NeededSecret) {
	state := d.s.Secrets[n.Name]
	if state == SecretThere {
		return
	}
	d.unmade = true
	object := named(names.KindSecret, n.Name)
	switch {
	case state == SecretOfOtherType:
		if d.provisioning.setProblem(spec.ReasonProvisioningNotReady, object,
			"Secret %s of %s has another type than %s; make it anew with one", n.Name, n.Field, strings.Join(n.Types, " and ")) {
			d.provisioning.further = ": the type of a Secret cannot be changed. The machine is started then"
		}
	case len(n.Types) > 0:
		if d.provisioning.setProblem(spec.ReasonProvisioningNotReady, object,
			"Secret %s of %s does not exist; make one of the type %s", n.Name, n.Field, strings.Join(n.Types, " or ")) {
			d.provisioning.further = ": the machine is started then"
		}
	default:
		d.provisioning.setProblem(spec.ReasonProvisioningNotReady, object,
			"Secret %s of %s does not exist; the machine is started when it does", n.Name, n.Field)
	}
	d.wakeAt(d.s.Now.Add(d.secretPause(spec.ConditionProvisioningReady, spec.ReasonProvisioningNotReady)))
}

// secretPause returns how long to wait before a Secret that a condition reports missing is read
// again. It grows with the time it has been missing: certificate issuers need seconds, and a
// Secret that never comes must not cost more and more.
func (d *decision) secretPause(condition, reason string) time.Duration {
	c := spec.FindCondition(d.stored.Conditions, condition)
	if c == nil || c.Reason != reason {
		return secretRetry
	}
	return min(max(d.s.Now.Sub(c.LastTransitionTime.Time)/8, secretRetry), secretLate)
}

const (
	// secretRetry is the first retry interval for a Secret that is not watched, and secretLate
	// the longest.
	secretRetry = time.Second
	secretLate  = time.Minute
)
