package changes

import (
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
)

// Proposed is [Between] for the manifest of a running machine and a proposed one, where the
// machine may run with yet another one. waits are the changes that would wait for its restart
// with the proposed one: whether a difference is among them replaces Between's result for it.
func Proposed(old, new *spec.VirtualMachine, waits []spec.AwaitingChange, o Options) []Change {
	d := compare(manifest.Defaulted(old), manifest.Defaulted(new), o)
	for i := range d.changes {
		c := &d.changes[i]
		if c.Applied == AppliedNever || c.Reason == deviceGoes {
			continue
		}
		path := c.Path
		if place := d.places[i]; place != "" {
			path = place
		}
		at := slices.IndexFunc(waits, func(w spec.AwaitingChange) bool {
			// Removed disks are counted in one list, all others in another.
			return removesDisk(w.Operation, w.Path) == removesDisk(c.Operation, path) && (isOrContains(w.Path, path) || isOrContains(path, w.Path))
		})
		switch {
		case at >= 0:
			if w := &waits[at]; w.Path == path && w.Message != "" {
				c.Reason = w.Message
			} else if c.Reason == deviceComes {
				c.Reason = ""
			}
			c.Applied = AppliedRestart
		case c.Applied == AppliedRestart:
			c.Applied, c.Reason = AppliedLive, hasAlready
			if d.comes(i) {
				c.Reason = deviceComes
			}
		}
	}
	return d.changes
}

func removesDisk(operation, path string) bool {
	return operation == spec.OperationRemove && (&Change{Path: path}).IsDisk()
}
