package kubevirt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
)

// The kinds that these fields refer to; flavor is the former name.
var (
	instanceTypes = []string{"VirtualMachineInstancetype", "VirtualMachineClusterInstancetype", "VirtualMachineFlavor", "VirtualMachineClusterFlavor"}
	preferences   = []string{"VirtualMachinePreference", "VirtualMachineClusterPreference"}
)

// refer resolves the instance type and the preference that the machine names. The instance type's
// settings override the machine's, the preference's apply where the machine has none.
func (m *machine) refer() error {
	sizes := m.root.Get("spec", "instancetype")
	found, err := m.referred(sizes, instanceTypes)
	switch {
	case err != nil:
		return err
	case found != nil:
		m.sizes = found.Get("spec")
	case sizes.Get("name").Is() && !m.instance.Get("domain", "memory", "guest").Is():
		return &tree.FieldError{Path: sizes.Path(), Message: fmt.Sprintf("the instance type %q is not among the files, and nothing else says how much memory the machine has; give its manifest, too", sizes.Get("name").String())}
	case sizes.Get("name").Is():
		sizes.Note("%s is not among the files; what the machine itself says counts alone", sizes.Get("name").String())
	}
	preference := m.root.Get("spec", "preference")
	found, err = m.referred(preference, preferences)
	switch {
	case err != nil:
		return err
	case found != nil:
		m.preference = found.Get("spec")
	case preference.Get("name").Is():
		preference.Note("%s is not among the files; its preferences are not applied", preference.Get("name").String())
	}
	for _, of := range []*tree.Node{m.sizes, m.preference} {
		of.Read()
		for name, value := range of.Get("annotations").Strings() {
			if m.vm.Annotations == nil {
				m.vm.Annotations = map[string]string{}
			}
			if _, own := m.vm.Annotations[name]; !own {
				m.vm.Annotations[name] = value
			}
		}
	}
	return nil
}

func (m *machine) referred(ref *tree.Node, kinds []string) (*tree.Node, error) {
	name, kind := ref.Get("name").String(), strings.TrimSuffix(ref.Get("kind").String(), "s")
	if name == "" {
		return nil, nil
	}
	if kind != "" {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return !strings.EqualFold(k, kind) })
	}
	return m.companion(name, kinds...)
}

// either returns the machine's own value, or else the preferred one. The other counts as read.
func either(own, preferred *tree.Node) *tree.Node {
	if own == nil {
		return preferred
	}
	preferred.ReadAll()
	return own
}

// preferred reads the preferences that every machine here satisfies anyway.
func (m *machine) preferred() {
	devices := m.preference.Get("devices")
	for _, name := range []string{
		"preferredAutoattachInputDevice", "preferredBlockMultiQueue", "preferredNetworkInterfaceMultiQueue", "preferredRng",
		"preferredInterfaceMasquerade", "preferredCdromBus",
	} {
		devices.Get(name).ReadAll()
	}
	if bus := devices.Get("preferredDiskBus"); bus.Is() && bus.String() != "virtio" {
		bus.Note("is %s; a disk is on virtio here, which the guest must know to boot from it", bus.String())
	}
	for _, name := range []string{"preferredAcpi", "preferredApic", "preferredSmm"} {
		m.preference.Get("features", name).ReadAll()
	}
	for _, name := range []string{"cpu", "devices", "features", "firmware", "machine", "clock"} {
		m.preference.Get(name).Read()
	}
}
