package runner

import (
	"context"
	"strings"

	"github.com/vmop/sdk/vmop/qmp"
)

type viewerProtocol struct {
	events string
	// tell returns the change of an event to the desired state; nil for none.
	tell    func(ev qmp.Event) (func(*desired), error)
	observe func(f *follower, ctx context.Context, in desired) error
}

func viewerProtocols() []viewerProtocol {
	return []viewerProtocol{
		{"SPICE_", spiceEvent, (*follower).observeSPICE},
		{"VNC_", vncEvent, (*follower).observeVNC},
	}
}

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

func letIn(event string) bool {
	for _, p := range viewerProtocols() {
		if event == p.events+"INITIALIZED" {
			return true
		}
	}
	return false
}
