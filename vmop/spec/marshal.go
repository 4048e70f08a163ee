package spec

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// NewVirtualMachine returns a machine of that name with nothing but its kind. An
// empty namespace is left to whoever applies or runs it.
func NewVirtualMachine(namespace, name string) *VirtualMachine {
	vm := &VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	vm.SetGroupVersionKind(GroupVersion().WithKind(KindVirtualMachine))
	return vm
}

// NewVmPool is [NewVirtualMachine] for a pool.
func NewVmPool(namespace, name string) *VmPool {
	pool := &VmPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pool.SetGroupVersionKind(GroupVersion().WithKind(KindVMPool))
	return pool
}

// Marshal returns the manifest of a machine or a pool as YAML that [Load] reads.
// It has the kind, whether the object has it or not: Go programs make objects
// without, and clients take it away. The status, which is not a manifest's to say,
// is left out. Objects of other types are an error; none is changed.
func Marshal(object runtime.Object) ([]byte, error) {
	var kind string
	switch o := object.(type) {
	case *VirtualMachine:
		if o == nil {
			return nil, fmt.Errorf("marshal a virtual machine: there is none")
		}
		c := o.DeepCopy()
		c.Status = VirtualMachineStatus{}
		kind, object = KindVirtualMachine, c
	case *VmPool:
		if o == nil {
			return nil, fmt.Errorf("marshal a pool: there is none")
		}
		c := o.DeepCopy()
		setSlice(&c.Spec.Permissions) // the one list that a manifest must have
		kind, object = KindVMPool, c
	default:
		return nil, fmt.Errorf("marshal a manifest: %T is neither a virtual machine nor a pool", object)
	}
	object.GetObjectKind().SetGroupVersionKind(GroupVersion().WithKind(kind))
	asJSON, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("marshal a %s: %w", kind, err)
	}
	data, err := yaml.JSONToYAML(asJSON)
	if err == nil && sameValue(data, asJSON) {
		return data, nil
	}
	// The encoder leaves some keys unquoted that mean something else then ("<<").
	// JSON is YAML, too, and means what it says.
	return append(asJSON, '\n'), nil
}

// sameValue reports whether YAML says what JSON says.
func sameValue(asYAML, asJSON []byte) bool {
	back, err := yaml.YAMLToJSON(asYAML)
	if err != nil {
		return false
	}
	var got, want any
	return json.Unmarshal(back, &got) == nil && json.Unmarshal(asJSON, &want) == nil && reflect.DeepEqual(got, want)
}
