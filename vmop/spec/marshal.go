package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// NewVirtualMachine returns a machine of that name with nothing but its kind. An empty namespace is
// left to the program that applies or runs it.
func NewVirtualMachine(namespace, name string) *VirtualMachine {
	vm := &VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	vm.SetGroupVersionKind(GroupVersion().WithKind(KindVirtualMachine))
	return vm
}

// Document makes a document of cloud-init (userData or networkConfig of [CloudInit]) of
// its text, which is a YAML mapping as people write it; a first line #cloud-config is a
// comment. Scripts (#!) are none: cloud-config has runcmd for them. Errors do not quote
// the text, which may have passwords.
func Document(text string) (*runtime.RawExtension, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("document of cloud-init: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("document of cloud-init: want a YAML mapping, such as \"packages: [nginx]\"")
	}
	return &runtime.RawExtension{Raw: data}, nil
}

// Marshal returns the manifest of a machine or a pool as YAML that [Load] reads.
// It has the kind, whether the object has it or not: Go programs make objects
// without, and clients take it away. The status, which is not a manifest's to say,
// is left out. Objects of other types are an error; none is changed.
func Marshal(object runtime.Object) ([]byte, error) {
	kind, known := kindOf(object)
	if !known {
		return nil, fmt.Errorf("marshal a manifest: %T is neither a virtual machine nor a pool", object)
	}
	if reflect.ValueOf(object).IsNil() {
		return nil, fmt.Errorf("marshal a %s: there is none", kind.noun)
	}
	manifest, is := object.DeepCopyObject().(TypedObject)
	if !is {
		return nil, fmt.Errorf("marshal a %s: %T cannot be copied", kind.noun, object)
	}
	kind.written(manifest)
	manifest.GetObjectKind().SetGroupVersionKind(GroupVersion().WithKind(kind.Name))
	asJSON, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("marshal a %s: %w", kind.noun, err)
	}
	data, err := yaml.JSONToYAML(asJSON)
	if err == nil && sameValue(data, asJSON) {
		return data, nil
	}
	// The encoder leaves some keys unquoted that mean something else then ("<<").
	// JSON is YAML, too, and means what it says.
	return append(asJSON, '\n'), nil
}

func sameValue(asYAML, asJSON []byte) bool {
	back, err := yaml.YAMLToJSON(asYAML)
	if err != nil {
		return false
	}
	var got, want any
	return json.Unmarshal(back, &got) == nil && json.Unmarshal(asJSON, &want) == nil && reflect.DeepEqual(got, want)
}

// MarshalYAML is for the encoders of YAML that know nothing of the names in JSON
// (gopkg.in/yaml.v3, go.yaml.in/yaml and others with its interface): the machine by these
// names, with its kind. JSON, and what is made of it (sigs.k8s.io/yaml, clients), has no
// such method on purpose: it would be promoted to every type that embeds a machine, and
// hide the fields of that. There a literal has the kind that it was given, and [Load]
// takes one without, see [Options].Kind; [Marshal] adds it.
func (vm VirtualMachine) MarshalYAML() (any, error) { return asYAML(&vm) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (p VmPool) MarshalYAML() (any, error) { return asYAML(&p) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (o VirtualMachineOperation) MarshalYAML() (any, error) { return asYAML(&o) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (c VirtualMachineClass) MarshalYAML() (any, error) { return asYAML(&c) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (d VirtualDisk) MarshalYAML() (any, error) { return asYAML(&d) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (a VirtualMachineBlockDeviceAttachment) MarshalYAML() (any, error) { return asYAML(&a) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (i VirtualImage) MarshalYAML() (any, error) { return asYAML(&i) }

// MarshalYAML is that of [VirtualMachine.MarshalYAML].
func (i ClusterVirtualImage) MarshalYAML() (any, error) { return asYAML(&i) }

// asYAML is an object as maps, lists and values, by its names in JSON, with its kind.
func asYAML(object TypedObject) (any, error) {
	kind, known := kindOf(object)
	if !known {
		return nil, fmt.Errorf("marshal a manifest: %T is of no known kind", object)
	}
	object.GetObjectKind().SetGroupVersionKind(GroupVersion().WithKind(kind.Name))
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("marshal a %s: %w", kind.noun, err)
	}
	return values, nil
}
