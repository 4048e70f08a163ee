package promises

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
)

func eachCondition(p *reconcile.Plan, do func(condition map[string]any)) {
	for _, st := range p.Statuses {
		all, _ := st.Status["conditions"].([]any)
		for _, c := range all {
			do(c.(map[string]any))
		}
	}
}

// LongMessage returns a condition's message that is longer than a line; empty if there is none.
func LongMessage(p reconcile.Plan) string {
	long := ""
	eachCondition(&p, func(c map[string]any) {
		if m, _ := c["message"].(string); len(m) > conditions.Line {
			long = m
		}
	})
	return long
}

// Ramble changes a plan to that of a mutant with overlong messages.
func Ramble[S any](_ *S, p *reconcile.Plan) {
	eachCondition(p, func(c map[string]any) {
		c["message"] = fmt.Sprint(c["message"], strings.Repeat("; and so on", conditions.Line))
	})
}
