package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

// Whether the operator runs is asked when it has not answered for a while, also if nothing
// else happens, and not of one that takes a second.
func TestAnOperatorGetsAWhileToAnswer(t *testing.T) {
	untold := machinekind.Progress{Waiting: "the operator has not acted upon the change yet; is it running?", Unanswered: true}
	waits := machinekind.Progress{Waiting: "no node takes it"}
	op := func(phase spec.OperationPhase) *spec.VirtualMachineOperation {
		o := spec.NewOperation("shop", "web", spec.OperationStart)
		o.Name, o.Status.Phase = "web-1", phase
		return o
	}
	const untaken = "the operator has not begun with operation web-1 yet; is it running?"
	for name, c := range map[string]struct {
		do   func(*telling)
		want string
	}{
		"one that answers soon": {func(g *telling) {
			g.machine(untold)
			time.Sleep(9 * time.Second)
			g.machine(waits)
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 9s no node takes it]"},
		"one that does not answer": {func(g *telling) {
			g.machine(untold)
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 10s " + untold.Waiting + "]"},
		"one that does not answer while something else happens": {func(g *telling) {
			g.machine(untold)
			time.Sleep(9 * time.Second)
			g.machine(untold)
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 9s the operator has not answered yet 10s " + untold.Waiting + "]"},
		"one that has answered what came before": {func(g *telling) {
			g.machine(untold)
			time.Sleep(5 * time.Second)
			g.machine(waits)
			time.Sleep(5 * time.Second)
			g.machine(untold)
			time.Sleep(11 * time.Second)
		}, "[0s the operator has not answered yet 5s no node takes it 10s the operator has not answered yet 20s " + untold.Waiting + "]"},
		"an operation that nobody begins with": {func(g *telling) {
			g.operation(op(""))
			g.machine(machinekind.Progress{Reached: true})
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 0s the operator has not answered yet 10s " + untaken + "]"},
		"an operation that is begun with": {func(g *telling) {
			g.operation(op(""))
			g.machine(waits)
			time.Sleep(time.Second)
			g.operation(op(spec.OperationInProgress))
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 0s the operator has not answered yet 1s no node takes it]"},
		"an operation that waits while the machine runs": {func(g *telling) {
			g.operation(op(""))
			g.machine(machinekind.Progress{Reached: true})
			time.Sleep(time.Second)
			o := op(spec.OperationInProgress)
			o.Status.Conditions = []spec.Condition{{Type: conditions.Completed, Message: "the restart waits: a claim is lost"}}
			g.operation(o)
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet 0s the operator has not answered yet 1s the restart waits: a claim is lost]"},
		"a wait that has ended": {func(g *telling) {
			g.machine(untold)
			g.end()
			g.operation(op(""))
			time.Sleep(time.Minute)
		}, "[0s the operator has not answered yet]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				began := time.Now()
				c.do(&telling{patience: operatorPatience, tell: func(text string) {
					told = append(told, time.Since(began).String()+" "+text)
				}})
				synctest.Wait()
				if got := fmt.Sprint(told); got != c.want {
					t.Errorf("told %s\nwant %s", got, c.want)
				}
			})
		})
	}
}
