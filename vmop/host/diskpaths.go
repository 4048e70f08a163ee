package host

import (
	"maps"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
)

func (h *Host) diskPaths(m *Machine) map[string]string {
	out := map[string]string{}
	if def, err := m.Definition(); err == nil {
		maps.Copy(out, def.Used)
	}
	o, err := m.Object()
	if err != nil {
		return out
	}
	local, err := h.Local(&o, Given{})
	if err != nil {
		return out
	}
	if c, err := machineconfig.ForHost(o.VirtualMachine, local); err == nil {
		for _, d := range startDisks(&c, exists) {
			out[d.name] = d.path
		}
	}
	return out
}
