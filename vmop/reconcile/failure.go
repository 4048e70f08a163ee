package reconcile

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Failure is a write that was refused.
type Failure struct {
	// Target is the action's.
	Target Target
	// Reason is the API server's, as in Forbidden; Message is its explanation.
	Reason, Message string
	// NamespaceGoes is true if the namespace is being deleted, in which nothing more can be
	// created.
	NamespaceGoes bool
	// Infeasible is true if a pod was not resized because its node has less than that in all,
	// which Kubernetes refuses from 1.36 on; before, the kubelet says so.
	Infeasible bool
	// Count is how often in a row, Last when.
	Count int
	Last  time.Time
}

// The least and the greatest delay before a refused write is retried, and the greatest for a
// quota, a limit and a node: they are not watched, and when they have grown a user waits for the
// machine, as when less is asked of a node.
const (
	writeDelay    = time.Second
	maxDelay      = 5 * time.Minute
	maxQuotaDelay = 30 * time.Second
)

// RetryAt returns when the write is retried.
func (f *Failure) RetryAt() time.Time {
	delay := Backoff(writeDelay, f.Count)
	if f.NamespaceGoes {
		delay = maxDelay
	} else if f.Quota() || f.LimitBelow() != "" || f.Infeasible {
		delay = min(delay, maxQuotaDelay)
	}
	return f.Last.Add(delay)
}

// Quota reports whether a quota of the namespace is the cause: too little is left of something,
// or the object lacks a value that the quota requires
// (k8s.io/apiserver/pkg/admission/plugin/resourcequota, controller.go).
func (f *Failure) Quota() bool {
	return f.Reason == string(metav1.StatusReasonForbidden) &&
		(strings.Contains(f.Message, "exceeded quota:") || strings.Contains(f.Message, "failed quota:"))
}

// WantsLimits reports whether a quota of the namespace counts limits, which a pod must have then.
func (f *Failure) WantsLimits() bool {
	return f.Quota() && (strings.Contains(f.Message, "limits.cpu") || strings.Contains(f.Message, "limits.memory"))
}

// LimitBelow returns the resource, memory or cpu, of which a pod requests more than its limit;
// empty if that is not the cause. A LimitRange of the namespace may have set the limit
// (k8s.io/kubernetes/pkg/apis/core/validation, validation.go).
func (f *Failure) LimitBelow() string {
	if f.Reason != string(metav1.StatusReasonInvalid) || f.Target.Kind != names.KindPod {
		return ""
	}
	for _, r := range []string{"memory", "cpu"} {
		if strings.Contains(f.Message, "must be less than or equal to "+r+" limit of ") {
			return r
		}
	}
	return ""
}

// Refused returns the failure because of which a write is not to be tried yet; nil if it may be.
// The caller omits such an action from its plan, reports why, and wakes at [Failure.RetryAt].
func Refused(failures []Failure, t Target, now time.Time) *Failure {
	for i := range failures {
		if f := &failures[i]; f.Target == t && now.Before(f.RetryAt()) {
			return f
		}
	}
	return nil
}

// Add adds actions that belong together to a plan, or none of them if the API server has just
// refused one: that failure is returned, and the plan wakes when the write may be tried.
func (p *Plan) Add(failures []Failure, now time.Time, actions ...Action) (refused *Failure) {
	for _, a := range actions {
		if f := Refused(failures, a.Target(), now); f != nil {
			p.WakeAt(f.RetryAt())
			refused = f
		}
	}
	if refused == nil {
		p.Actions = append(p.Actions, actions...)
	}
	return refused
}

// WakeAt asks for a decision at a time, unless there is an earlier one.
func (p *Plan) WakeAt(t time.Time) { p.Wake = Earlier(p.Wake, t) }

// Told returns how an object of a namespace reports a refused write for it: the reason of a
// condition, and a text with the cause and the consequence. The noun, as in disk, names the
// object.
func (f *Failure) Told(noun, namespace string) (reason, text string) {
	reason, next := conditions.ReasonWriteRefused, "it is tried again"
	switch {
	case f.NamespaceGoes:
		return conditions.ReasonNamespaceTerminating, fmt.Sprintf("namespace %s is being deleted, and the %s with it", namespace, noun)
	case f.Quota():
		reason = conditions.ReasonQuotaExceeded
	case f.Reason == string(metav1.StatusReasonForbidden):
		reason, next = conditions.ReasonNamespaceNotPrepared, "prepare the namespace as deploy/runner does"
	}
	return reason, fmt.Sprintf("%s: %s; %s", f.Target, strings.TrimSpace(f.Message), next)
}

// Backoff doubles a delay with the number of failures, as the kubelet does, up to five minutes.
// It is 0 without failures.
func Backoff(first time.Duration, failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := first
	for range failures - 1 {
		if d *= 2; d >= maxDelay {
			return maxDelay
		}
	}
	return d
}

// Earlier returns the earlier of two times to wake, of which zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
