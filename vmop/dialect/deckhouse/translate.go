package deckhouse

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/dialect/internal/seedscript"
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// Translate translates a machine, without setting defaults, and returns notes on what of it has no
// counterpart or another meaning. The class and the images of the cluster that it names are looked
// up in all.
func Translate(o *spec.Object, all []spec.Object) (*spec.VirtualMachine, []spec.Problem, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, nil, err
	}
	m := &machine{root: root, all: all, vm: &spec.VirtualMachine{}}
	m.vm.APIVersion, m.vm.Kind = spec.GroupVersion().String(), spec.KindVirtualMachine
	meta := root.Get("metadata")
	m.vm.Name, m.vm.Namespace = meta.Get("name").String(), meta.Get("namespace").String()
	m.vm.Labels, m.vm.Annotations = meta.Get("labels").Strings(), meta.Get("annotations").Strings()
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.Get(name).ReadAll()
	}
	for _, name := range tree.ServerMade {
		meta.Get(name).ReadAll()
	}
	m.power()
	if err := m.size(); err != nil {
		return nil, nil, err
	}
	m.hardware()
	m.placement()
	if err := m.provisioning(); err != nil {
		return nil, nil, err
	}
	if err := m.class(); err != nil {
		return nil, nil, err
	}
	if err := m.blockDevices(); err != nil {
		return nil, nil, err
	}
	return m.vm, root.Notes(unread), nil
}

// power translates the run policy, which is the same here. A host without run policies uses the
// state.
func (m *machine) power() {
	m.vm.Spec.VM.State = spec.StateRunning
	policy := m.root.Get("spec", "runPolicy")
	switch p := spec.RunPolicy(policy.String()); p {
	case "":
		m.vm.Spec.RunPolicy = spec.RunPolicyAlwaysOnUnlessStoppedManually // Deckhouse's default
	case spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOnUnlessStoppedManually:
		m.vm.Spec.RunPolicy = p
	case spec.RunPolicyAlwaysOff, spec.RunPolicyManual:
		m.vm.Spec.VM.State, m.vm.Spec.RunPolicy = spec.StateStopped, p
	default:
		policy.Note("is %q, which has no counterpart; the machine runs", string(p))
	}
	if mode := m.root.Get("spec", "disruptions", "restartApprovalMode"); mode.Is() {
		switch a := spec.RestartApprovalMode(mode.String()); a {
		case spec.RestartManual, spec.RestartAutomatic:
			m.vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: a}
		default:
			mode.Note("is %q, which has no counterpart; restarts are left to people", string(a))
		}
	}
	grace := int32(60) // Deckhouse's default
	if seconds, ok := m.root.Get("spec", "terminationGracePeriodSeconds").Int(); ok && seconds >= 0 {
		grace = seconds
	}
	m.vm.Spec.VM.PowerdownTimeout = &grace
}

func (m *machine) size() error {
	cores, ok := m.root.Get("spec", "cpu", "cores").Int()
	if !ok || cores < 1 || cores > 4096 {
		return &tree.FieldError{Path: "spec.cpu.cores", Message: "is required; it says how many CPUs the machine has"}
	}
	m.vm.Spec.VM.CurrentCPUs = new(cores)
	switch sockets := sockets(cores); {
	case sockets == 1: // like a plain number
		m.vm.Spec.VM.MaximumCPUs = new(cores)
	case sockets > 1 && cores%sockets == 0:
		m.vm.Spec.VM.CPUTopology = &spec.CPUTopology{Sockets: sockets, CoresPerDie: cores / sockets}
	default:
		m.vm.Spec.VM.MaximumCPUs = new(cores)
		m.root.Get("spec", "cpu", "cores").Note("is a number that does not go into sockets there; the machine has %d CPUs in one socket", cores)
	}
	size := m.root.Get("spec", "memory", "size")
	q, ok := size.Quantity()
	if !ok {
		return &tree.FieldError{Path: "spec.memory.size", Message: "is required; it says how much memory the machine has, such as 4Gi"}
	}
	m.vm.Spec.VM.MaximumRAM, m.vm.Spec.VM.CurrentRAM = new(q), new(q.DeepCopy())
	m.coreFraction()
	return nil
}

// sockets returns the number of sockets that a guest sees there, which must divide the number of
// CPUs; 0 if there are more CPUs than a machine can have there.
func sockets(cores int32) int32 {
	switch {
	case cores <= 16:
		return 1
	case cores <= 32:
		return 2
	case cores <= 64:
		return 4
	case cores <= 248:
		return 8
	}
	return 0
}

func (m *machine) coreFraction() {
	fraction := m.root.Get("spec", "cpu", "coreFraction")
	if _, err := spec.ParseCoreFraction(fraction.String()); err != nil {
		fraction.Note("is %q, which has no counterpart; the operator computes what the pod requests", fraction.String())
		return
	}
	m.vm.Spec.CoreFraction = fraction.String()
}

func (m *machine) hardware() {
	s := m.root.Get("spec")
	switch loader := s.Get("bootloader"); loader.String() {
	case "", "BIOS":
		m.vm.Spec.VM.Firmware = spec.FirmwareBIOS
	case "EFI":
		m.vm.Spec.VM.Firmware = spec.FirmwareUEFI
	case "EFIWithSecureBoot":
		m.vm.Spec.VM.Firmware = spec.FirmwareSecure
	default:
		loader.Note("has no counterpart; the machine has a BIOS")
	}
	if os := s.Get("osType"); os.Is() && os.String() != "Generic" {
		os.Note("the machine has the same hardware for every system here")
	}
	if virtio, ok := s.Get("enableParavirtualization").Bool(); ok && !virtio {
		s.Get("enableParavirtualization").Note("disks and networks are virtio ones here, which the guest must know")
	}
	m.vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true}}
	nics := s.Get("networks").List()
	if len(nics) == 0 {
		m.vm.Spec.VM.Networks = []spec.Network{{User: &spec.UserNetwork{}}}
	}
	for _, n := range nics {
		n.Get("id").Read()
		if n.Get("type").String() == "Main" {
			m.vm.Spec.VM.Networks = append(m.vm.Spec.VM.Networks, spec.Network{User: &spec.UserNetwork{}})
			continue
		}
		n.Get("name").Read() // of a network of the cluster; the bridge replaces it
		n.Remark("is on a bridge of the host, spec.vm.networks[%d].tap.bridge, which must be chosen", len(m.vm.Spec.VM.Networks))
		m.vm.Spec.VM.Networks = append(m.vm.Spec.VM.Networks, spec.Network{Tap: &spec.TapNetwork{}})
	}
	if mode := s.Get("disruptions", "restartApprovalMode"); mode.Is() && mode.String() == "Manual" {
		mode.Read() // it is the same here
	}
}

// class translates the name of the class, which is not applied: the class may change independently
// of the machine.
func (m *machine) class() error {
	class := m.root.Get("spec", "virtualMachineClassName")
	m.vm.Spec.VirtualMachineClassName = class.String()
	if m.vm.Spec.VirtualMachineClassName == "" {
		return nil
	}
	of, err := m.companion(kindClass, m.vm.Spec.VirtualMachineClassName)
	switch {
	case err != nil:
		return err
	case of == nil:
		class.Note("the class %s is not among the files: convert its manifest, too, or write a VirtualMachineClass of this name", class.String())
	case m.vm.Spec.CoreFraction == "" && !m.root.Get("spec", "cpu", "coreFraction").Is() && defaultCoreFraction(of, *m.vm.Spec.VM.CurrentCPUs) == "":
		m.vm.Spec.CoreFraction = "100%" // Deckhouse's default
	}
	return nil
}

func (m *machine) placement() {
	s := m.root.Get("spec")
	m.vm.Spec.NodeSelector = s.Get("nodeSelector").Strings()
	a := s.Get("affinity")
	var nodes corev1.NodeAffinity
	var together, apart spec.VirtualMachineAndPodAffinity // the same shape here
	affinity := func() *spec.Affinity {
		if m.vm.Spec.Affinity == nil {
			m.vm.Spec.Affinity = &spec.Affinity{}
		}
		return m.vm.Spec.Affinity
	}
	if a.Get("nodeAffinity").Decode(&nodes) {
		affinity().NodeAffinity = &nodes
	}
	if a.Get("virtualMachineAndPodAffinity").Decode(&together) {
		affinity().VirtualMachineAndPodAffinity = &together
	}
	if a.Get("virtualMachineAndPodAntiAffinity").Decode(&apart) {
		affinity().VirtualMachineAndPodAntiAffinity = &apart
	}
	s.Get("tolerations").Decode(&m.vm.Spec.Tolerations)
	s.Get("topologySpreadConstraints").Decode(&m.vm.Spec.TopologySpreadConstraints)
	m.vm.Spec.PriorityClassName = s.Get("priorityClassName").String()
}

func (m *machine) provisioning() error {
	p := m.root.Get("spec", "provisioning")
	p.Get("type").Read()
	for _, r := range []struct {
		field string
		of    spec.ProvisioningType
	}{{"userDataRef", spec.ProvisioningUserDataRef}, {"sysprepRef", spec.ProvisioningSysprepRef}} {
		ref := p.Get(r.field)
		if !ref.Is() {
			continue
		}
		ref.Get("kind").Read()
		secret := &spec.ProvisioningSecret{Kind: names.KindSecret, Name: ref.Get("name").String()}
		m.vm.Spec.Provisioning = &spec.Provisioning{Type: r.of}
		if r.of == spec.ProvisioningUserDataRef {
			m.vm.Spec.Provisioning.UserDataRef = secret
		} else {
			m.vm.Spec.Provisioning.SysprepRef = secret
		}
		return nil
	}
	data := p.Get("userData")
	text := data.String()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if len(text) <= limits.MaxInlineUserData {
		m.vm.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: text}
		return nil
	}
	// There, characters are counted, and not bytes.
	return m.longUserData(data, text)
}

// longUserData translates user data that is too long for spec.provisioning. What is too long for
// spec.cloudInit as well needs a Secret, and is an error: no user could log in to a guest without
// it.
func (m *machine) longUserData(data *tree.Node, text string) error {
	m.vm.Spec.CloudInit = &spec.CloudInit{}
	size := fmt.Sprintf("has %d bytes, and spec.provisioning takes %d", len(text), limits.MaxInlineUserData)
	const advice = "put it into a Secret, and name that by spec.provisioning.userDataRef"
	first, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	switch {
	case strings.HasPrefix(first, "#!"):
		data.Note("%s; it is a script, which cloud-config writes to %s, where cloud-init runs it once", size, seedscript.Path)
		m.vm.Spec.CloudInit.UserData = seedscript.UserData(text)
		return nil
	case strings.TrimSpace(first) != "#cloud-config":
		return &tree.FieldError{Path: data.Path(), Message: fmt.Sprintf("%s; spec.cloudInit, which takes more, is for what begins with #cloud-config or is a script: %s", size, advice)}
	}
	raw, err := yamljson.ToJSON([]byte(text))
	if err != nil {
		return &tree.FieldError{Path: data.Path(), Message: fmt.Sprintf("%s; spec.cloudInit, which takes more, is for YAML that can be read (%v): %s", size, err, advice)}
	}
	data.Note("%s; it is spec.cloudInit.userData here, and no longer in a Secret: %s if it has a password", size, advice)
	m.vm.Spec.CloudInit.UserData = &runtime.RawExtension{Raw: raw}
	return nil
}
