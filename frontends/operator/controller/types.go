package controller

import (
	"encoding/json"
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	machineKind = spec.GroupVersion().WithKind(spec.KindVirtualMachine)
	poolKind    = spec.GroupVersion().WithKind(spec.KindVMPool)
)

// newObject is an empty object of a kind of which no typed client is used: one
// object that cannot be read would end a typed list of all of them.
func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

func newObjectList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return l
}

// decodeError is a stored object that the types cannot hold.
type decodeError struct {
	kind, namespace, name string
	err                   error
}

func (e *decodeError) Error() string {
	return fmt.Sprintf("%s %s/%s cannot be understood: %v", e.kind, e.namespace, e.name, e.err)
}

func (e *decodeError) Unwrap() error { return e.err }

// decode goes by way of JSON: the converter of apimachinery makes another number of
// one that is too large for its field.
func decode[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, &decodeError{u.GetKind(), u.GetNamespace(), u.GetName(), err}
	}
	return out, nil
}

func decodeMachine(u *unstructured.Unstructured) (*spec.VirtualMachine, error) {
	return decode[spec.VirtualMachine](u)
}

func decodePool(u *unstructured.Unstructured) (*spec.VmPool, error) { return decode[spec.VmPool](u) }
