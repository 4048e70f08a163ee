package kubevirt

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

func (m *machine) size() error {
	domain := m.instance.Get("domain")
	cpu := domain.Get("cpu")
	switch {
	case m.sizes != nil:
		if err := m.typeSizes(cpu); err != nil {
			return err
		}
	case namesCPUs(cpu):
		m.cpu(cpu)
	default:
		m.cpusOfResources(domain.Get("resources"))
	}
	m.cpuModel(cpu)
	if m.vm.Spec.VM.MaximumRAM == nil {
		m.memory(domain)
	}
	if m.vm.Spec.VM.MaximumRAM == nil {
		return &tree.FieldError{Path: m.instance.Path() + ".domain.memory.guest", Message: "is required but missing: nothing says how much memory the machine has"}
	}
	m.resources(domain.Get("resources"))
	return nil
}

// resources notes requests and limits that differ from what the operator computes from the
// machine's CPUs and memory.
func (m *machine) resources(n *tree.Node) {
	has := map[string]*resource.Quantity{
		"cpu": resource.NewQuantity(int64(*m.vm.Spec.VM.CurrentCPUs), resource.DecimalSI), "memory": m.vm.Spec.VM.CurrentRAM,
	}
	for _, of := range []string{"requests", "limits"} {
		for _, what := range []string{"cpu", "memory"} {
			q := n.Get(of, what)
			if amount, ok := q.Quantity(); ok && amount.Cmp(*has[what]) != 0 {
				q.Note("what the pod requests is computed here of the machine's CPUs and memory; for something else write spec.resources")
			}
		}
	}
}

// namesCPUs reports whether the manifest says how many CPUs there are. Otherwise KubeVirt goes by the
// limit or request of the pod, also if there is a model.
func namesCPUs(cpu *tree.Node) bool {
	return slices.ContainsFunc([]string{"sockets", "cores", "threads"}, func(name string) bool {
		n, ok := cpu.Get(name).Int()
		return ok && n > 0
	})
}

func (m *machine) cpu(cpu *tree.Node) {
	n := map[string]int32{"sockets": 1, "cores": 1, "threads": 1}
	for name := range n {
		if value, ok := cpu.Get(name).Int(); ok && value > 0 {
			n[name] = value
		}
	}
	if total := int64(n["sockets"]) * int64(n["cores"]) * int64(n["threads"]); total > mostCPUs {
		cpu.Note("is %d CPUs, more than a machine can have; it has one", total)
		m.setCPUs(1)
		return
	}
	m.setTopology(n["sockets"], n["cores"], n["threads"])
}

// mostCPUs is more than any machine has, and small enough for products not to overflow.
const mostCPUs = 4096

// setTopology sets CPUs and topology. A topology with only sockets or only cores becomes a plain
// number, which can change while the machine runs.
func (m *machine) setTopology(sockets, cores, threads int32) {
	all := sockets * cores * threads
	if threads == 1 && (sockets == 1 || cores == 1) {
		m.setCPUs(all)
		return
	}
	m.vm.Spec.VM.CPUTopology = &spec.CPUTopology{Sockets: sockets, CoresPerDie: cores, ThreadsPerCore: threads}
	m.vm.Spec.VM.CurrentCPUs = &all
}

func (m *machine) setCPUs(n int32) {
	m.vm.Spec.VM.CPUTopology = nil
	m.vm.Spec.VM.MaximumCPUs, m.vm.Spec.VM.CurrentCPUs = new(n), new(n)
}

// cpuModel translates the model and its features to QEMU's form. The instance type's model takes
// precedence over the machine's, and the machine's features over preferred ones.
func (m *machine) cpuModel(cpu *tree.Node) {
	model := either(m.sizes.Get("cpu", "model"), cpu.Get("model"))
	name, features := model.String(), cpu.Get("features").List()
	for _, f := range m.preference.Get("cpu", "preferredCPUFeatures").List() {
		if slices.ContainsFunc(features, func(own *tree.Node) bool { return own.Get("name").String() == f.Get("name").String() }) {
			f.ReadAll()
			continue
		}
		features = append(features, f)
	}
	switch name {
	case "host-passthrough":
		name = "host"
	case "host-model":
		name = "host"
		model.Note("is the host's processor as it is here")
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

// cpusOfResources sets the number of CPUs of a machine that only has resources: rounded up, as by
// KubeVirt.
func (m *machine) cpusOfResources(resources *tree.Node) {
	for _, of := range []string{"limits", "requests"} {
		q, ok := resources.Get(of, "cpu").Quantity()
		if !ok {
			continue
		}
		if n := q.ScaledValue(0); n >= 1 && n <= mostCPUs {
			m.setCPUs(int32(n))
			return
		}
	}
	m.setCPUs(1)
}

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

// typeSizes takes CPUs and memory from the machine's instance type; KubeVirt refuses a machine that
// sets other values.
func (m *machine) typeSizes(cpu *tree.Node) error {
	cpus, ok := m.sizes.Get("cpu", "guest").Int()
	memory, hasMemory := m.sizes.Get("memory", "guest").Quantity()
	if !ok || cpus < 1 || cpus > mostCPUs || !hasMemory {
		name := m.sizes.Object().Name
		return &tree.FieldError{Path: m.root.Get("spec", "instancetype").Path(), Message: fmt.Sprintf("the instance type %q does not say how many CPUs and how much memory it has", name)}
	}
	for _, name := range []string{"sockets", "cores", "threads"} {
		cpu.Get(name).Note("the instance type says how many CPUs there are; it is left out")
	}
	m.instance.Get("domain", "memory", "guest").Note("the instance type says how much memory there is; it is left out")
	m.spread(cpus)
	m.vm.Spec.VM.MaximumRAM, m.vm.Spec.VM.CurrentRAM = new(memory), new(memory.DeepCopy())
	if most, ok := m.sizes.Get("memory", "maxGuest").Quantity(); ok && most.Cmp(memory) > 0 {
		m.vm.Spec.VM.MaximumRAM = &most
	}
	return nil
}

func (m *machine) spread(cpus int32) {
	p := m.preference.Get("cpu")
	of, options := p.Get("preferredCPUTopology"), p.Get("spreadOptions")
	ratio, given := either(options.Get("ratio"), m.preference.Get("preferSpreadSocketToCoreRatio")).Int()
	if !given || ratio < 1 {
		ratio = 2
	}
	across := options.Get("across").String()
	const twice = 2 // threads per core where several are demanded
	var sockets, cores, threads int32 = cpus, 1, 1
	switch kind := of.String(); kind {
	case "", "preferSockets", "sockets", "preferAny", "any":
	case "preferCores", "cores":
		sockets, cores = 1, cpus
	case "preferThreads", "threads":
		sockets, threads = 1, cpus
	case "preferSpread", "spread":
		switch across {
		case "CoresThreads":
			sockets, cores, threads = 1, cpus/twice, twice
		case "SocketsCoresThreads":
			sockets, cores, threads = cpus/twice/ratio, ratio, twice
		default:
			sockets, cores = cpus/ratio, ratio
		}
	default:
		of.Note("is %q, which has no counterpart; the guest sees %d CPUs in one socket", kind, cpus)
	}
	if cpus == 1 || sockets*cores*threads != cpus {
		if cpus != 1 {
			of.Note("%d CPUs do not go into it; the guest sees them in one socket", cpus)
		}
		sockets, cores, threads = cpus, 1, 1
	}
	m.setTopology(sockets, cores, threads)
}
