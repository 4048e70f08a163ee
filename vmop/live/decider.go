package live

import "fmt"

type decider struct {
	in  Input
	out Decision
	// waits are the keys below "/Runner" of what could be live, but not in this
	// machine.
	waits []string
	// grown are the positions of drives that have grown since the start, and
	// refusedGrowth says why one has not.
	grown         []int
	refusedGrowth string
}

// goal names what an attempt is for. A new configuration is a new goal.
func (d *decider) goal(what any) string { return fmt.Sprintf("%v in %d", what, d.in.Generation) }

// because adds the cause to a message, if there is one.
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
