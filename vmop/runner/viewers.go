package runner

import (
	"context"
	"strings"

	"github.com/vmop/sdk/vmop/qmp"
)

// viewerProtocol is how a runner learns who is connected to a display by one protocol.
type viewerProtocol struct {
	// events begins the names of QEMU's events about it.
	events string
	// tell is what an event says to the follower; nil for nothing.
	tell func(ev qmp.Event) (func(*desired), error)
	// observe asks QEMU who is connected.
	observe func(f *follower, ctx context.Context, in desired) error
}

// viewerProtocols has a row for each protocol.
func viewerProtocols() []viewerProtocol {
	return []viewerProtocol{
		{"SPICE_", spiceEvent, (*follower).observeSPICE},
		{"VNC_", vncEvent, (*follower).observeVNC},
	}
}

// viewerEvent handles an event about viewers, and ignores all others.
func (e *Engine) viewerEvent(ev qmp.Event) error {
	for _, p := range viewerProtocols() {
		if !strings.HasPrefix(ev.Name, p.events) {
			continue
		}
		tell, err := p.tell(ev)
		if err != nil {
			return err
		}
		if tell != nil {
			e.change(tell)
		}
	}
	return nil
}

// letIn reports whether an event says that a viewer was let in.
func letIn(event string) bool {
	for _, p := range viewerProtocols() {
		if event == p.events+"INITIALIZED" {
			return true
		}
	}
	return false
}
