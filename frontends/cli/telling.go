package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

const (
	// operatorPatience is how long an operator may take to begin with a request before the user is
	// asked to check that it runs: it may be busy with other machines, or have just taken over.
	operatorPatience = 10 * time.Second
	forOperator      = "the operator has not answered yet"
)

// telling passes on what a machine waits for. A missing answer of the operator is passed on only
// after some time.
type telling struct {
	patience time.Duration
	tell     func(string)

	mu sync.Mutex
	// untaken is the text for an operation that the operator has not begun with, inProgress what one in
	// progress says, what the machine's progress.
	untaken    string
	inProgress string
	what       machinekind.Progress
	// since is when the wait for the operator began, until it answers.
	since time.Time
	late  *time.Timer
	ended bool
}

func (t *telling) operation(o *spec.VirtualMachineOperation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untaken, t.inProgress = "", ""
	if c := spec.FindCondition(o.Status.Conditions, conditions.Completed); c != nil && o.Status.Phase == spec.OperationInProgress {
		t.inProgress = c.Message
	}
	if o.Status.Phase == "" {
		t.untaken = fmt.Sprintf("the operator has not begun with operation %s yet; is it running?", o.Name)
	}
	t.now()
}

func (t *telling) machine(p machinekind.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.what = p
	t.now()
}

// end ends it: nothing is passed on from then on.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.now()
}

// now passes on the present state, and runs again when the operator has been waited for long
// enough.
func (t *telling) now() {
	if t.late != nil {
		t.late.Stop()
		t.late = nil
	}
	if t.ended {
		return
	}
	text, unanswered := t.what.Waiting, t.what.Unanswered
	if text == "" {
		text = t.inProgress // such as why a machine that runs does not restart
	}
	if t.untaken != "" {
		text, unanswered = t.untaken, true
	}
	if !unanswered {
		t.since = time.Time{}
	} else if t.since.IsZero() {
		t.since = time.Now()
	}
	if left := t.patience - time.Since(t.since); unanswered && left > 0 {
		text = forOperator
		t.late = time.AfterFunc(left, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.now()
		})
	}
	if text != "" {
		t.tell(text)
	}
}
