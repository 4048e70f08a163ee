package main

import (
	"fmt"
	"sync"
	"time"

	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

const (
	// operatorPatience is how long an operator may take to begin with what was asked
	// for, before somebody is asked whether it runs: it may be at others' machines, or
	// another one has just taken its place.
	operatorPatience = 10 * time.Second
	// forOperator is told until then.
	forOperator = "the operator has not answered yet"
)

// telling passes on what a machine waits for. That the operator has not answered is
// passed on when it has not for a while.
type telling struct {
	patience time.Duration
	tell     func(string)

	mu sync.Mutex
	// untaken is what is to be told of an operation that the operator has not begun
	// with, and what of the machine.
	untaken string
	what    machinekind.Progress
	// since is when the operator was first waited for, until it answers.
	since time.Time
	late  *time.Timer
	ended bool
}

// operation is called with the operation, whenever it is another one.
func (t *telling) operation(o *spec.VirtualMachineOperation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untaken = ""
	if o.Status.Phase == "" {
		t.untaken = fmt.Sprintf("the operator has not begun with operation %s yet; is it running?", o.Name)
	}
	t.now()
}

// machine is called with how far the machine is, whenever it is another one.
func (t *telling) machine(p machinekind.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.what = p
	t.now()
}

// end is called when nobody waits any more: nothing is told from then on.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.now()
}

// now tells what there is to tell, and comes again when the operator has been waited
// for long enough.
func (t *telling) now() {
	if t.late != nil {
		t.late.Stop()
		t.late = nil
	}
	if t.ended {
		return
	}
	text, unanswered := t.what.Waiting, t.what.Unanswered
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
