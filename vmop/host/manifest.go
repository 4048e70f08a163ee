package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/vmop/spec"
)

// namedManifest returns the manifest of a machine under another name, otherwise as written. If
// fresh, it is for another machine, without the UUID, MAC addresses and cloud-init's instance-id.
// The returned object is defaulted and valid.
func namedManifest(o *spec.Object, namespace, name string, fresh bool) (spec.Object, error) {
	file := FullName(namespace, name)
	written, err := only(spec.Load(file, o.Raw, spec.Options{}))
	if err != nil {
		return spec.Object{}, err
	}
	want := written.VirtualMachine.DeepCopy()
	want.Name = name
	if namespaceOr(want.Namespace) != namespaceOr(namespace) {
		want.Namespace = namespace
	}
	if fresh {
		withoutIdentity(want)
	}
	text, err := editManifest(o.Raw, want, fresh)
	if err != nil || !says(text, want) {
		// A manifest in an unusual form loses its comments.
		if text, err = spec.Marshal(want); err != nil {
			return spec.Object{}, err
		}
	}
	return only(spec.Load(file, text, spec.Options{Default: true, Validate: true}))
}

func only(objects []spec.Object, err error) (spec.Object, error) {
	if err != nil {
		return spec.Object{}, err
	}
	if len(objects) != 1 || objects[0].VirtualMachine == nil {
		return spec.Object{}, fmt.Errorf("the manifest has %d objects and not one VirtualMachine", len(objects))
	}
	return objects[0], nil
}

// written returns an object with its manifest, as [spec.Load] does. A program's own machine gets a
// manifest, with defaults, and is validated.
func written(o *spec.Object) (*spec.Object, error) {
	switch {
	case o == nil || o.VirtualMachine == nil:
		return nil, errors.New("there is no virtual machine in the object")
	case len(o.Raw) > 0:
		return o, nil
	}
	data, err := spec.Marshal(o.VirtualMachine)
	if err != nil {
		return nil, err
	}
	object, err := only(spec.Load(o.File, data, spec.Options{Default: true, Validate: true}))
	return &object, err
}

func withoutIdentity(vm *spec.VirtualMachine) {
	vm.UID, vm.ResourceVersion, vm.Generation = "", "", 0
	vm.Spec.VM.MachineUUID = ""
	for i := range vm.Spec.VM.Networks {
		n := &vm.Spec.VM.Networks[i]
		if n.Tap != nil {
			n.Tap.MAC = ""
		}
		if n.User != nil {
			n.User.MAC = ""
		}
	}
	if vm.Spec.CloudInit != nil {
		delete(vm.Spec.CloudInit.MetaData, instanceIDKey)
	}
}

const instanceIDKey = "instance-id"

// editManifest changes the text of a manifest to the wanted machine, and keeps its comments.
func editManifest(text []byte, want *spec.VirtualMachine, fresh bool) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	meta := child(root, "metadata")
	setText(meta, "name", want.Name)
	if want.Namespace != "" {
		setText(meta, "namespace", want.Namespace)
	}
	if fresh {
		for _, key := range []string{"uid", "resourceVersion", "generation"} {
			removeKey(meta, key)
		}
		vm := child(child(root, "spec"), "vm")
		removeKey(vm, "machineUuid")
		if networks := child(vm, "networks"); networks != nil {
			for _, n := range networks.Content {
				removeKey(child(n, "tap"), "mac")
				removeKey(child(n, "user"), "mac")
			}
		}
		removeKey(child(child(child(root, "spec"), "cloudInit"), "metaData"), instanceIDKey)
	}
	return encodeManifest(&doc)
}

func encodeManifest(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func setText(n *yaml.Node, key, value string) {
	if v := child(n, key); v != nil {
		*v = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, LineComment: v.LineComment, HeadComment: v.HeadComment, FootComment: v.FootComment}
	} else if n != nil && n.Kind == yaml.MappingNode {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	}
}

func removeKey(n *yaml.Node, key string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
			return
		}
	}
}

func says(text []byte, want *spec.VirtualMachine) bool {
	got, err := only(spec.Load("", text, spec.Options{}))
	if err != nil {
		return false
	}
	a, errA := asJSON(got.VirtualMachine)
	b, errB := asJSON(want)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// asJSON encodes empty and missing fields alike.
func asJSON(vm *spec.VirtualMachine) ([]byte, error) {
	vm = vm.DeepCopy()
	if c := vm.Spec.CloudInit; c != nil && len(c.MetaData) == 0 {
		c.MetaData = nil
	}
	return json.Marshal(vm)
}
