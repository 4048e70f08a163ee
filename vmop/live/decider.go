package live

import "fmt"

type decider struct {
	in  Input
	out Decision
	// waits are the keys below "/Runner" of live changes that this machine does not support.
	waits []string
	// grown are the indices of drives that have grown since the start; refusedGrowth is the reason
	// why one has not.
	grown         []int
	refusedGrowth string
}

func (d *decider) goal(what any) string { return fmt.Sprintf("%v in %d", what, d.in.Generation) }

func because(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}

func (d *decider) condition(kind string, status Status, reason, format string, args ...any) {
	d.out.Conditions = append(d.out.Conditions, Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (d *decider) asConfigured(kind string) { d.condition(kind, True, ReasonAsConfigured, "") }
