package host

import (
	"fmt"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// DisplayNotes says which servers of the job's display other users of this host can
// connect to: those on ports, which have no password here, and are on the loopback interface.
func (j *Job) DisplayNotes() []string { return displayNotes(&j.Config) }

func displayNotes(c *runnerconfig.Config) []string {
	d := c.Runner.VM.Display
	if d == nil {
		return nil
	}
	var out []string
	note := func(field string, port *int, address, instead string) {
		if port != nil {
			out = append(out, fmt.Sprintf("spec.vm.display.%s: without a password every user of this host can see and use the machine, at %s port %d%s", field, address, *port, instead))
		}
	}
	const socket = "; without a port the display is on a socket that only you can open"
	if s := d.SPICE; s != nil && s.Socket == "" {
		note("spice.port", s.Port, s.Address, socket)
	}
	if v := d.VNC; v != nil {
		if v.Socket == "" {
			note("vnc.port", v.Port, v.Address, socket)
		}
		note("vnc.websocket", v.Websocket, v.Address, "")
	}
	return out
}
