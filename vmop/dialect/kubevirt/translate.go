package kubevirt

import (
	"maps"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// The kinds that describe one machine. OfflineVirtualMachine is the name of VirtualMachine in
// v1alpha1, where VirtualMachine was an instance.
const (
	kindMachine  = "VirtualMachine"
	kindInstance = "VirtualMachineInstance"
	kindOffline  = "OfflineVirtualMachine"
)

// Kinds lists the kinds that [Translate] accepts, each followed by its group.
func Kinds() []string {
	return []string{kindMachine + "." + Group, kindInstance + "." + Group, kindOffline + "." + Group}
}

// Companions lists the kinds, each followed by its group, that are only read where a machine refers
// to them.
func Companions() []string {
	all := []string{dataVolume + ".cdi." + Group}
	for _, kind := range slices.Concat(instanceTypes, preferences) {
		group := ".instancetype."
		if strings.HasSuffix(kind, "Flavor") {
			group = ".flavor."
		}
		all = append(all, kind+group+Group)
	}
	return all
}

// Translate translates a machine, without setting defaults, and returns notes on what of it has no
// counterpart or another meaning. The instance types, preferences and data volumes that it names
// are looked up in all.
func Translate(o *spec.Object, all []spec.Object) (*spec.VirtualMachine, []spec.Problem, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, nil, err
	}
	m := &machine{root: root, instance: root.Get("spec", "template", "spec"), all: all, vm: &spec.VirtualMachine{}}
	if o.Kind == kindInstance || o.Kind == kindMachine && root.Get("spec", "domain").Is() {
		m.instance, m.alone = root.Get("spec"), true
	}
	if !m.instance.Is() {
		return nil, nil, &tree.FieldError{Path: "spec.template.spec", Message: "is required but missing; it describes the machine"}
	}
	if err := m.translate(); err != nil {
		return nil, nil, err
	}
	notes := root.Notes(unread)
	for _, n := range m.companions {
		notes = append(notes, n.Notes(unread)...)
	}
	return m.vm, notes, nil
}

func (m *machine) translate() error {
	m.vm.APIVersion, m.vm.Kind = spec.GroupVersion().String(), spec.KindVirtualMachine
	m.metadata()
	if err := m.refer(); err != nil {
		return err
	}
	m.power()
	if err := m.size(); err != nil {
		return err
	}
	m.firmware()
	m.devices()
	m.disks()
	m.networks()
	m.placement()
	m.version()
	m.silent()
	m.preferred()
	return nil
}

// version notes versions that KubeVirt itself no longer accepts. Their former fields keep their
// meaning: registryDisk, and volumes that disks name by volumeName.
func (m *machine) version() {
	version := m.root.Get("apiVersion")
	switch version.String() {
	case Group + "/v1alpha1", Group + "/v1alpha2":
		version.Note("KubeVirt serves this version no more; what it says is understood as it was meant then")
	}
}

// metadata translates name, labels and annotations. The template's labels are those of the pod
// there, as a machine's are here.
func (m *machine) metadata() {
	meta := m.root.Get("metadata")
	m.vm.Name, m.vm.Namespace = meta.Get("name").String(), meta.Get("namespace").String()
	if generate := meta.Get("generateName"); m.vm.Name == "" && generate.Is() {
		m.vm.Name = strings.TrimRight(generate.String(), "-")
		generate.Note("a machine has a name here; it is called %q", m.vm.Name)
	}
	m.vm.Labels = meta.Get("labels").Strings()
	m.vm.Annotations = meta.Get("annotations").Strings()
	template := m.root.Get("spec", "template", "metadata")
	for name, of := range map[string]*map[string]string{"labels": &m.vm.Labels, "annotations": &m.vm.Annotations} {
		added := template.Get(name).Strings()
		if len(added) == 0 {
			continue
		}
		if *of == nil {
			*of = map[string]string{}
		}
		maps.Copy(*of, added)
	}
	for _, name := range tree.ServerMade {
		meta.Get(name).ReadAll()
		template.Get(name).ReadAll()
	}
}

// silent reads settings that every machine here has anyway.
func (m *machine) silent() {
	for _, name := range []string{"apiVersion", "kind", "status"} {
		m.root.Get(name).ReadAll()
	}
	domain := m.instance.Get("domain")
	for _, n := range []*tree.Node{
		domain, domain.Get("cpu"), domain.Get("devices"), domain.Get("memory"), domain.Get("machine"), domain.Get("firmware"), domain.Get("firmware", "bootloader"), domain.Get("features"),
		domain.Get("resources"), domain.Get("resources", "requests"), domain.Get("resources", "limits"),
	} {
		if n != nil && len(n.Keys()) == 0 {
			n.Read()
		}
	}
	devices := domain.Get("devices")
	for _, name := range []string{"rng", "autoattachInputDevice", "networkInterfaceMultiqueue", "blockMultiQueue"} {
		devices.Get(name).Read()
	}
	for _, name := range []string{"acpi", "apic", "smm"} {
		if feature := domain.Get("features", name); feature.Is() {
			if enabled, ok := feature.Get("enabled").Bool(); !ok || enabled {
				feature.Read()
			} else {
				feature.Note("every machine has it here")
			}
		}
	}
}
