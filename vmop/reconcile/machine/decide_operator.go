package machine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two operators may feel responsible for one machine: one of the cluster and one of a namespace,
// or one that a user runs locally. The first is named in the machine's ConfigMap and stays
// responsible while it runs. The other one writes a claim there, and leaves the machine alone
// when that is answered. Without an answer it takes over the machine.
const (
	// answersWithin is how long an operator may take to answer.
	answersWithin = 30 * time.Second
	// claimsInterval is when an operator that was answered claims again: the other may have been
	// removed since.
	claimsInterval = 10 * time.Minute
	// rivalGone is how long after its last claim another operator is reported.
	rivalGone = 2*claimsInterval + 5*time.Minute
	// formerInterval is how long a write by VM-Operator is not noted again.
	formerInterval = time.Minute
)

// FormerOperator is the name for VM-Operator's own operator, which knows nothing of claims: one
// is noted in its place when it is seen to write. No vmop operator has this name.
const FormerOperator = "VM-Operator"

// responsible reports whether this operator manages the machine. If not, the plan holds what is
// to be done about that, and nothing else.
func (d *decision) responsible() bool {
	me, cm := d.s.Settings.Operator, d.s.ConfigMap
	if me == "" || cm == nil || cm.DeletionTimestamp != nil || !d.ours(cm) {
		return true
	}
	holder, text := cm.Annotations[names.AnnotationOperator], cm.Annotations[names.AnnotationOperatorClaim]
	claimant, at, claimed := readClaim(text)
	age, answered := d.s.Now.Sub(at), text == cm.Annotations[names.AnnotationOperatorAnswer]
	claimed = claimed && age > -time.Minute // a claim from a clock that was ahead does not count
	annotate := func(key, value string) bool {
		return d.do(reconcile.AnnotateConfigMap{Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion, Annotations: map[string]string{key: value}}, &d.sole)
	}
	if holder == "" || holder == me {
		var noted time.Time
		if claimed && claimant == FormerOperator {
			noted = at
		}
		if d.formerActs(noted) && d.s.Now.Sub(noted) >= formerInterval {
			// Noted first: the evidence is about to be overwritten.
			if annotate(names.AnnotationOperatorClaim, claim(FormerOperator, d.s.Now)) {
				d.wakeAt(d.s.Now.Add(time.Second))
				return false
			}
		}
		if holder == "" || !claimed || claimant == me || age >= rivalGone {
			return true
		}
		d.wakeAt(at.Add(rivalGone))
		if claimant == FormerOperator {
			d.sole.setProblem(spec.ReasonTwoOperators, named("Operator", claimant),
				"VM-Operator's own operator still writes objects of the machine, which is operator %s's; stop it: kubectl scale deployment vm-operator --replicas=0, in its namespace", me)
			return true // it does not read answers
		}
		if d.sole.setProblem(spec.ReasonTwoOperators, named("Operator", claimant),
			"operators %s and %s both feel responsible for the machine; remove one of them, or give each its namespaces (VMOP_NAMESPACES, --exclude-namespace)",
			me, claimant) {
			d.sole.further = ": the machine is operator " + me + "'s, and the other leaves it alone"
		}
		if !answered && annotate(names.AnnotationOperatorAnswer, text) {
			// The rest follows when the answer is observed, to avoid two writes of one object.
			d.wakeAt(d.s.Now.Add(time.Second))
			return false
		}
		return true
	}
	switch mine := claimed && claimant == me; {
	case mine && answered && age < claimsInterval, claimed && !mine && age < claimsInterval:
		d.wakeAt(at.Add(claimsInterval))
	case mine && !answered && age < answersWithin:
		d.wakeAt(at.Add(answersWithin))
	case mine && !answered:
		return true
	case annotate(names.AnnotationOperatorClaim, claim(me, d.s.Now)):
		d.wakeAt(d.s.Now.Add(answersWithin))
		if !mine {
			d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: spec.ReasonTwoOperators, Action: "Claim",
				Note: fmt.Sprintf("operator %s finds the machine looked after by operator %s; it leaves it alone unless that one is gone: remove one of them, or give each its namespaces", me, holder)})
		}
	default:
		d.tellNoClaim(holder)
	}
	return false
}

// tellNoClaim tells by an event that the operator may not claim the machine of another one, which is
// perhaps gone: the status is that one's.
func (d *decision) tellNoClaim(holder string) {
	first := slices.ContainsFunc(d.s.Failures, func(f reconcile.Failure) bool {
		return f.Count == 1 && f.Target == (reconcile.AnnotateConfigMap{Name: d.s.ConfigMap.Name}).Target()
	})
	if first {
		d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: d.sole.reason, Action: "Claim",
			Note: fmt.Sprintf("operator %s finds the machine looked after by operator %s, and cannot ask whether that one is gone: %s%s", d.s.Settings.Operator, holder, d.sole.message, d.sole.further)})
	}
}

// formerActs reports whether VM-Operator's own operator has written for the machine since this
// one manages it and since the last note.
func (d *decision) formerActs(noted time.Time) bool {
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionSoleOperator)
	if c == nil || c.Reason == spec.ReasonCreation {
		return false // a takeover
	}
	return formerApplied(d.s.ConfigMap) ||
		d.pod.former() && c.LastTransitionTime.Before(&d.pod.pod.CreationTimestamp) && noted.Before(d.pod.pod.CreationTimestamp.Time)
}

// formerApplied reports whether VM-Operator was the last to apply an object. Its field manager
// has the same name as ours, but all that we apply has a digest.
func formerApplied(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == names.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" &&
			(m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:`+names.AnnotationApplied+`"`)))
	})
}

// Withdraw withdraws the claim of an operator that ends to a machine that another one manages, so
// that the two are no longer reported; nil if there is none.
func Withdraw(cm *corev1.ConfigMap, operator string) *reconcile.AnnotateConfigMap {
	claimant, _, claimed := readClaim(cm.Annotations[names.AnnotationOperatorClaim])
	holder := cm.Annotations[names.AnnotationOperator]
	if !claimed || claimant != operator || holder == "" || holder == operator {
		return nil
	}
	return &reconcile.AnnotateConfigMap{Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion, Annotations: map[string]string{names.AnnotationOperatorClaim: ""}}
}

func claim(operator string, at time.Time) string {
	return operator + " " + at.UTC().Format(time.RFC3339)
}

func readClaim(text string) (operator string, at time.Time, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i <= 0 {
		return "", time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text[i+1:])
	return text[:i], at, err == nil
}
