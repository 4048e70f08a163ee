package kubevirt

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// size translates CPUs and memory, which an instance type may give.
func (m *machine) size() error {
	domain := m.instance.Get("domain")
	cpus, err := m.instanceType()
	if err != nil {
		return err
	}
	if cpu := domain.Get("cpu"); cpu.Is() {
		m.cpu(cpu)
	} else if cpus == 0 {
		m.cpusOfResources(domain.Get("resources"))
	}
	if m.vm.Spec.VM.MaximumRAM == nil {
		m.memory(domain)
	}
	if m.vm.Spec.VM.MaximumRAM == nil {
		return &tree.FieldError{Path: m.instance.Path() + ".domain.memory.guest", Message: "is required but missing: nothing says how much memory the machine has"}
	}
	resources := domain.Get("resources")
	for _, of := range []string{"requests", "limits"} {
		for _, what := range []string{"cpu", "memory"} {
			resources.Get(of, what).Read() // computed from what the machine has
		}
	}
	return nil
}

// cpu translates the CPUs. Sockets, cores and threads that all but one kind of
// are 1 are a plain number, which can change while the machine runs.
func (m *machine) cpu(cpu *tree.Node) {
	n := map[string]int32{"sockets": 1, "cores": 1, "threads": 1}
	given := 0
	for name := range n {
		if value, ok := cpu.Get(name).Int(); ok && value > 0 {
			n[name] = value
			if value > 1 {
				given++
			}
		}
	}
	total := int64(n["sockets"]) * int64(n["cores"]) * int64(n["threads"])
	if total > 4096 {
		cpu.Note("is %d CPUs, more than a machine can have; it has one", total)
		total, given = 1, 0
	}
	if given > 1 || n["threads"] > 1 {
		m.vm.Spec.VM.CPUTopology = &spec.CPUTopology{Sockets: n["sockets"], CoresPerDie: n["cores"], ThreadsPerCore: n["threads"]}
		m.vm.Spec.VM.CurrentCPUs = new(int32(total))
	} else {
		m.setCPUs(int32(total))
	}
	m.cpuModel(cpu)
}

func (m *machine) setCPUs(n int32) {
	m.vm.Spec.VM.CPUTopology = nil
	m.vm.Spec.VM.MaximumCPUs, m.vm.Spec.VM.CurrentCPUs = new(n), new(n)
}

// cpuModel translates the model and its features to QEMU's form.
func (m *machine) cpuModel(cpu *tree.Node) {
	name, features := cpu.Get("model").String(), cpu.Get("features").List()
	switch name {
	case "host-passthrough":
		name = "host"
	case "host-model":
		name = "host"
		cpu.Get("model").Note("is the host's processor as it is here")
	case "":
		if len(features) == 0 {
			return
		}
		name = "host"
	}
	for _, f := range features {
		feature := f.Get("name").String()
		switch policy := f.Get("policy").String(); policy {
		case "", "require", "force":
			name += ",+" + feature
		case "disable", "forbid":
			name += ",-" + feature
		default:
			f.Note("feature %s with the policy %q is left to the CPU model", feature, policy)
		}
	}
	m.vm.Spec.VM.CPUModel = name
}

// cpusOfResources is the number of CPUs of a machine that only asks for some:
// whole ones, as KubeVirt counts them.
func (m *machine) cpusOfResources(resources *tree.Node) {
	for _, of := range []string{"limits", "requests"} {
		q, ok := resources.Get(of, "cpu").Quantity()
		if !ok {
			continue
		}
		if n := q.ScaledValue(0); n >= 1 && n <= 4096 {
			m.setCPUs(int32(n))
			return
		}
	}
	m.setCPUs(1)
}

// memory translates how much the guest has, and how much it can have.
func (m *machine) memory(domain *tree.Node) {
	memory, resources := domain.Get("memory"), domain.Get("resources")
	for _, n := range []*tree.Node{memory.Get("guest"), resources.Get("requests", "memory"), resources.Get("limits", "memory")} {
		q, ok := n.Quantity()
		if !ok {
			continue
		}
		m.vm.Spec.VM.MaximumRAM, m.vm.Spec.VM.CurrentRAM = new(q), new(q.DeepCopy())
		break
	}
	if most := memory.Get("maxGuest"); most.Is() && m.vm.Spec.VM.MaximumRAM != nil {
		if q, ok := most.Quantity(); ok && q.Cmp(*m.vm.Spec.VM.MaximumRAM) > 0 {
			m.vm.Spec.VM.MaximumRAM = &q
		}
	}
}

// The kinds that a machine refers to by these fields; flavor is the former name.
var (
	instanceTypes = []string{"VirtualMachineInstancetype", "VirtualMachineClusterInstancetype", "VirtualMachineFlavor", "VirtualMachineClusterFlavor"}
	preferences   = []string{"VirtualMachinePreference", "VirtualMachineClusterPreference"}
)

// instanceType takes CPUs and memory from the instance type that the machine
// names. Without it among the objects nobody knows them.
func (m *machine) instanceType() (cpus int32, err error) {
	for _, of := range []struct {
		field string
		kinds []string
	}{
		{"instancetype", instanceTypes},
		{"preference", preferences},
	} {
		ref := m.root.Get("spec", of.field)
		name := ref.Get("name").String()
		if name == "" {
			continue
		}
		ref.Get("kind").Read()
		found, err := m.companion(name, of.kinds...)
		switch {
		case err != nil:
			return 0, err
		case found != nil && of.field == "instancetype":
			if cpus, err = m.typeSizes(ref, found, name); err != nil {
				return 0, err
			}
		case found != nil:
			ref.Note("preferences of %s are not applied; write what matters into the machine", name)
		case of.field == "preference":
			ref.Note("%s is not among the files; its preferences are not applied", name)
		case !m.instance.Get("domain", "memory", "guest").Is():
			return 0, &tree.FieldError{Path: ref.Path(), Message: fmt.Sprintf("the instance type %q is not among the files, and nothing else says how much memory the machine has; give its manifest, too", name)}
		}
	}
	return cpus, nil
}

func (m *machine) typeSizes(ref, found *tree.Node, name string) (int32, error) {
	cpus, ok := found.Get("spec", "cpu", "guest").Int()
	memory, hasMemory := found.Get("spec", "memory", "guest").Quantity()
	if !ok || cpus < 1 || !hasMemory {
		return 0, &tree.FieldError{Path: ref.Path(), Message: fmt.Sprintf("the instance type %q does not say how many CPUs and how much memory it has", name)}
	}
	m.setCPUs(cpus)
	m.vm.Spec.VM.MaximumRAM, m.vm.Spec.VM.CurrentRAM = new(memory), new(memory.DeepCopy())
	var others []string
	for _, key := range found.Get("spec").Keys() {
		if key != "cpu" && key != "memory" {
			others = append(others, key)
		}
	}
	if len(others) > 0 {
		ref.Note("of the instance type %s only CPUs and memory are taken, not %s", name, strings.Join(others, ", "))
	}
	return cpus, nil
}
