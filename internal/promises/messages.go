package promises

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile"
)

// Line is how long the message of a condition may be, in bytes, where names have a usual
// length: kubectl has one line for it.
const Line = 200

// eachCondition calls a function with each condition that a plan reports.
func eachCondition(p *reconcile.Plan, do func(condition map[string]any)) {
	for _, st := range p.Statuses {
		all, _ := st.Status["conditions"].([]any)
		for _, c := range all {
			do(c.(map[string]any))
		}
	}
}

// LongMessage is a message of a condition that is longer than a line; empty if there is
// none.
func LongMessage(p reconcile.Plan) string {
	long := ""
	eachCondition(&p, func(c map[string]any) {
		if m, _ := c["message"].(string); len(m) > Line {
			long = m
		}
	})
	return long
}

// Ramble is the plan of a mutant that says more than anybody reads.
func Ramble[S any](_ *S, p *reconcile.Plan) {
	eachCondition(p, func(c map[string]any) { c["message"] = fmt.Sprint(c["message"], strings.Repeat("; and so on", Line)) })
}
