package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Two operators may feel responsible for one machine: one of the cluster and one of
// a namespace, or one that somebody runs on his own computer. The first is named in
// the machine's ConfigMap, and stays responsible as long as it is there. The other
// one asks by a claim in the same place, and leaves the machine alone when it is
// answered. When it is not, the first is gone, and the machine is the other's.
const (
	// answersWithin is how long an operator may take to answer.
	answersWithin = 30 * time.Second
	// claimsAgain is when an operator that was answered asks again: the other may
	// have been removed since.
	claimsAgain = 10 * time.Minute
	// rivalGone is how long after its last claim another operator is told of.
	rivalGone = 2*claimsAgain + 5*time.Minute
)

// responsible reports whether this operator looks after the machine. If it does
// not, the plan has what there is to do about that, and nothing else.
func (d *decision) responsible() bool {
	me, cm := d.s.Settings.Operator, d.s.ConfigMap
	if me == "" || cm == nil || cm.DeletionTimestamp != nil || !d.ours(cm) {
		return true
	}
	holder, text := cm.Annotations[names.AnnotationOperator], cm.Annotations[names.AnnotationOperatorClaim]
	claimant, at, claimed := readClaim(text)
	age, answered := d.s.Now.Sub(at), text == cm.Annotations[names.AnnotationOperatorAnswer]
	claimed = claimed && age > -time.Minute // one of a clock that was ahead is none
	annotate := func(key, value string) bool {
		return d.do(reconcile.AnnotateConfigMap{Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion, Annotations: map[string]string{key: value}}, &d.sole)
	}
	if holder == "" || holder == me {
		if holder == "" || !claimed || claimant == me || age >= rivalGone {
			return true
		}
		d.wakeAt(at.Add(rivalGone))
		d.sole.problem(spec.ReasonTwoOperators, named("Operator", claimant),
			"operators %s and %s both feel responsible for the machine, which is %[1]s's; %[2]s leaves it alone; remove one of them, or give each its namespaces (VMOP_NAMESPACES, --exclude-namespace)", me, claimant)
		if !answered && annotate(names.AnnotationOperatorAnswer, text) {
			// The rest follows when the answer is seen: two writes of one object.
			d.wakeAt(d.s.Now.Add(time.Second))
			return false
		}
		return true
	}
	switch mine := claimed && claimant == me; {
	case mine && answered && age < claimsAgain, claimed && !mine && age < claimsAgain:
		d.wakeAt(at.Add(claimsAgain))
	case mine && !answered && age < answersWithin:
		d.wakeAt(at.Add(answersWithin))
	case mine && !answered:
		return true
	case annotate(names.AnnotationOperatorClaim, me+" "+d.s.Now.UTC().Format(time.RFC3339)):
		d.wakeAt(d.s.Now.Add(answersWithin))
		if !mine {
			d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: spec.ReasonTwoOperators, Action: "Claim",
				Note: fmt.Sprintf("operator %s finds the machine looked after by operator %s; it leaves it alone unless that one is gone: remove one of them, or give each its namespaces", me, holder)})
		}
	}
	return false
}

// readClaim reads an operator and a time.
func readClaim(text string) (operator string, at time.Time, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i <= 0 {
		return "", time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text[i+1:])
	return text[:i], at, err == nil
}
