package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
)

// What belongs together is added together: a write that was refused a moment ago keeps
// the others out, and the plan looks again when it may be tried.
func TestAddLeavesOutWhatWasRefused(t *testing.T) {
	now := time.Unix(1000, 0)
	claim, pod := reconcile.DeleteClaim{Name: "c"}, reconcile.DeletePod{Name: "p"}
	failures := []reconcile.Failure{{Target: pod.Target(), Reason: "Forbidden", Message: "no", Count: 1, Last: now}}
	var p reconcile.Plan
	if f := p.Add(failures, now, claim, pod); f == nil || f.Target != pod.Target() || len(p.Actions) > 0 || !p.Wake.Equal(f.RetryAt()) {
		t.Errorf("%v, %+v", f, p)
	}
	if f := p.Add(failures, now, claim); f != nil || len(p.Actions) != 1 {
		t.Errorf("%v, %+v", f, p)
	}
	if f := p.Add(failures, now.Add(time.Hour), claim, pod); f != nil || len(p.Actions) != 3 {
		t.Errorf("later: %v, %+v", f, p)
	}
}

// Nobody waits for minutes when a quota or a node has grown, or less is asked of it.
func TestRefusalsAreTriedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		f     reconcile.Failure
		delay time.Duration
	}{
		{reconcile.Failure{Reason: "Forbidden", Message: "no rights"}, 5 * time.Minute},
		{reconcile.Failure{Reason: "Forbidden", Message: "exceeded quota: pods"}, 30 * time.Second},
		{reconcile.Failure{Reason: "Forbidden", Message: "the node is small", Infeasible: true}, 30 * time.Second},
		{reconcile.Failure{Reason: "Forbidden", Message: "exceeded quota: pods", NamespaceGoes: true}, 5 * time.Minute},
	} {
		c.f.Count, c.f.Last = 100, now
		if got := c.f.RetryAt().Sub(now); got != c.delay {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

func TestRefusalsAreTold(t *testing.T) {
	target := reconcile.DeletePod{Name: "p"}.Target()
	for _, c := range []struct {
		f      reconcile.Failure
		reason string
		text   string
	}{
		{reconcile.Failure{NamespaceGoes: true}, conditions.ReasonNamespaceTerminating, "namespace lab is being deleted, and the disk with it"},
		{reconcile.Failure{Reason: "Forbidden", Message: " exceeded quota: x "}, conditions.ReasonQuotaExceeded, "exceeded quota: x; it is tried again"},
		{reconcile.Failure{Reason: "Forbidden", Message: "no rights"}, conditions.ReasonNamespaceNotPrepared, "no rights; prepare the namespace as deploy/runner does"},
		{reconcile.Failure{Reason: "Invalid", Message: "odd"}, conditions.ReasonWriteRefused, "odd; it is tried again"},
	} {
		c.f.Target = target
		reason, text := c.f.Told("disk", "lab")
		if reason != c.reason || !strings.HasSuffix(text, c.text) {
			t.Errorf("%+v: %s, %q", c.f, reason, text)
		}
	}
}
