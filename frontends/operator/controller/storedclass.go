package controller

import (
	"encoding/json"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type storedClass struct {
	kept[spec.VirtualMachineClass]
	isDefault bool
}

type storedClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []storedClass `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (c *storedClass) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements [runtime.Object]. The items are never modified.
func (l *storedClassList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = append([]storedClass(nil), l.Items...)
	return &out
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *storedClass) UnmarshalJSON(data []byte) error {
	*c = storedClass{}
	if err := c.kept.UnmarshalJSON(data); err != nil {
		return err
	}
	var marked struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(c.data.text(), &marked); err != nil {
		return err
	}
	c.isDefault = (&spec.VirtualMachineClass{ObjectMeta: metav1.ObjectMeta{Annotations: marked.Metadata.Annotations}}).IsDefault()
	return nil
}

func classNamed(o client.Object) []string {
	if m, ok := o.(*machine); ok && m.class != "" {
		return []string{m.class}
	}
	return nil
}
