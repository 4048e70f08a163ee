package host

import (
	"fmt"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// DisplayNotes report the servers of the job's display to which other users of this host can
// connect: those on ports, which have no password here, and are on the loopback interface.
func (j *Job) DisplayNotes() []string { return displayNotes(&j.Config) }

func displayNotes(c *runnerconfig.Config) []string {
	var out []string
	for _, s := range c.Runner.VM.Display.Servers() {
		for _, p := range s.Ports {
			instead := ""
			if p.HasSocket() {
				instead = "; without a port the display is on a socket that only you can open"
			}
			out = append(out, fmt.Sprintf("spec.%s: without a password every user of this host can see and use the machine, at %s port %d%s", p.Field, s.Address, p.Port, instead))
		}
	}
	return out
}
