package kubevirt

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

type machine struct {
	root              *tree.Node // the object
	instance          *tree.Node // the VirtualMachineInstance's specification in it
	alone             bool       // the object is an instance, which no controller recreates
	all               []spec.Object
	vm                *spec.VirtualMachine
	companions        []*tree.Node
	sizes, preference *tree.Node
}

func (m *machine) object(name string, kinds ...string) *spec.Object {
	for i := range m.all {
		o := &m.all[i]
		for _, kind := range kinds {
			if o.Kind == kind && o.Name == name && (o.Namespace == m.vm.Namespace || o.Namespace == "" || strings.Contains(kind, "Cluster")) {
				return o
			}
		}
	}
	return nil
}

// companion returns an object as a tree, or nil. Its unread fields are noted like the machine's,
// except those of a Secret, of which only one key is used.
func (m *machine) companion(name string, kinds ...string) (*tree.Node, error) {
	o := m.object(name, kinds...)
	if o == nil {
		return nil, nil
	}
	for _, n := range m.companions {
		if n.Object() == o {
			return n, nil
		}
	}
	n, err := tree.Companion(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Kind, name, err)
	}
	if o.Kind != kindSecret {
		m.companions = append(m.companions, n)
	}
	return n, nil
}

func unread(path string) string {
	for suffix, message := range hints {
		if strings.HasSuffix(path, suffix) {
			return message
		}
	}
	return "has no counterpart and is left out"
}

var hints = map[string]string{
	".livenessProbe":         "has no counterpart: nothing inside of a guest decides here whether it is restarted; a watchdog device of a custom template can",
	".readinessProbe":        "has no counterpart: a machine is ready when its guest executes",
	".evictionStrategy":      "has no counterpart yet: an eviction shuts the guest down, and the machine starts again elsewhere",
	".hyperv":                "has no counterpart: the machine has no Hyper-V enlightenments unless a custom template adds them to the CPU model",
	".preferredHyperv":       "has no counterpart: the machine has no Hyper-V enlightenments unless a custom template adds them to the CPU model",
	".watchdog":              "has no counterpart in the standard machine; examples/watchdog has a template with one",
	".dedicatedCpuPlacement": "has no counterpart: CPUs are not pinned",
}

const (
	dataVolume = "DataVolume"
	kindSecret = "Secret"
)

// Group is KubeVirt's API group.
const Group = "kubevirt.io"
