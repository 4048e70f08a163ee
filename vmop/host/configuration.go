package host

import (
	"bytes"
	"maps"
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func (h *Host) configuration(o *spec.Object, g Given) (runnerconfig.Config, secrets, error) {
	local, err := h.Local(o, g)
	if err != nil {
		return runnerconfig.Config{}, nil, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return c, nil, err
	}
	c.Runner.Namespace = namespaceOr(o.Namespace)
	runnerconfig.Default(&c)
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return c, nil, err
	}
	if err := h.checkMerged(d, &c); err != nil {
		return c, nil, err
	}
	before, err := d.Definition()
	if err != nil {
		return c, nil, err
	}
	if err := settleIdle(d, namespaceOr(o.Namespace), o.Name); err != nil {
		return c, nil, err
	}
	if seed := c.Runner.CloudInit; seed != nil && before.InstanceID != "" && !namesInstance(o.VirtualMachine) {
		seed.MetaData[instanceIDKey] = before.InstanceID // the map is not shared
	}
	if err := checkUploads(g.canonical(o.VirtualMachine).Disks, before); err != nil {
		return c, nil, err
	}
	if len(c.Runner.Sources()) == 0 {
		return c, nil, nil
	}
	all, err := readSecrets(g.over(before.Given).Secrets, c.Runner.Namespace)
	if err != nil {
		return c, nil, err
	}
	if err := all.checkType(o.VirtualMachine.Spec.Provisioning); err != nil {
		return c, nil, err
	}
	used, err := all.content.fill(&c.Runner)
	return c, used, err
}

// manifestText needs no encoding: items of a list are JSON, which is also YAML.
func manifestText(o *spec.Object) []byte {
	return slices.Concat(bytes.TrimRight(o.Raw, "\n"), []byte("\n"))
}

func namesInstance(vm *spec.VirtualMachine) bool {
	return vm.Spec.CloudInit != nil && vm.Spec.CloudInit.MetaData[instanceIDKey] != ""
}

// Local returns the facts of this host for reconcile to run a machine: what it is given now, and
// what it was given before.
func (h *Host) Local(o *spec.Object, g Given) (machineconfig.Host, error) {
	if o == nil || o.VirtualMachine == nil {
		return machineconfig.Host{}, errNoMachine
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return machineconfig.Host{}, err
	}
	def, err := d.Definition()
	if err != nil {
		return machineconfig.Host{}, err
	}
	g = g.canonical(o.VirtualMachine).over(def.Given)
	// What was given to a disk that was removed from the manifest is kept, but not used.
	maps.DeleteFunc(g.Disks, func(name, path string) bool {
		return diskName(o.VirtualMachine, name) == "" && def.Disks[name] == path
	})
	l := machineconfig.Host{
		DataDir: d.Data, RuntimeDir: d.Runtime,
		ImageRepository: g.ImageRepository,
		Disks:           g.Disks,
		ShareBase:       g.ManifestDir,
		Shares:          g.Shares,
		ExplicitPorts:   machineconfig.ExplicitPorts(o),
		Accelerator:     g.Accelerator,
	}
	if l.ImageRepository == "" {
		l.ImageRepository = h.ImagesDir()
	}
	return l, nil
}
