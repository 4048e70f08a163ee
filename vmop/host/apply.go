package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Applied is the result of applying a new manifest.
type Applied struct {
	// Changes are the differences, with what each needs; see [Changes].
	Changes []changes.Change
	// Running reports that the machine runs and was given the manifest.
	Running bool
	// Waiting are the running machine's conditions that are not as configured, RestartRequired
	// among them.
	Waiting []live.Condition
}

// Apply replaces the manifest of an existing machine by one that is defaulted and valid, and
// changes a running machine as far as possible. It returns when that is done, or when ctx ends.
func (h *Host) Apply(ctx context.Context, m Machine, o *spec.Object, g Given) (Applied, error) {
	var out Applied
	if o == nil || o.VirtualMachine == nil {
		return out, errNoMachine
	}
	if o.Name != m.Name || namespaceOr(o.Namespace) != m.Namespace {
		return out, fmt.Errorf("the manifest is that of %s, not of %s", FullName(o.Namespace, o.Name), m.FullName())
	}
	before, err := m.Object()
	if err != nil && !errors.Is(err, ErrNoManifest) {
		before = spec.Object{} // it is replaced, even if it is invalid
	}
	if before.VirtualMachine != nil {
		out.Changes = Changes(before.VirtualMachine, o.VirtualMachine)
		if def, err := m.Definition(); err == nil && len(def.Used) == 0 && !exists(filepath.Join(m.Data, runner.UUIDFile)) {
			// A machine that was not started yet gets its disks from this manifest. One without
			// disks that was started has a UUID.
			for i := range out.Changes {
				out.Changes[i].Applied, out.Changes[i].Reason = changes.AppliedRestart, ""
			}
		}
		def, err := m.Definition()
		if err != nil {
			return out, err
		}
		keepSizes(out.Changes, o.VirtualMachine, g.canonical(o.VirtualMachine).over(def.Given).Disks)
	}
	c, _, err := h.configuration(o, g)
	if err != nil {
		return out, err
	}
	if m.Runner != 0 {
		devices, err := h.changeDevices(ctx, &m, o, g, &c)
		if err != nil {
			return out, err
		}
		devices.tell(out.Changes)
	}
	if err := m.keep(o, g); err != nil {
		return out, err
	}
	if m.Runner == 0 {
		return out, nil
	}
	out.Running = true
	c.Runner.Generation = m.State.Generation + 1
	data, err := json.Marshal(c)
	if err != nil {
		return out, err
	}
	if err := atomicfile.Replace(filepath.Join(m.runtimeDir(), runner.ConfigFile), data); err != nil {
		return out, fmt.Errorf("tell the machine: %w", err)
	}
	m, err = h.Wait(ctx, m, func(now *Machine) (bool, error) {
		if !now.Running() {
			return true, nil
		}
		s := &now.State
		refused := slices.ContainsFunc(s.Conditions, func(c live.Condition) bool {
			return c.Type == runner.ConfigurationAccepted && c.Status != live.True
		})
		settled := !slices.ContainsFunc(s.Conditions, func(c live.Condition) bool { return c.Reason == live.ReasonAdjusting })
		return refused || s.Generation >= c.Runner.Generation && settled, nil
	})
	for _, c := range m.State.Conditions {
		if bad := c.Status != live.True; c.Type == live.RestartRequired && !bad || waits(c) {
			out.Waiting = append(out.Waiting, c)
		}
	}
	return out, err
}
