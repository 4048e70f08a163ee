package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/vmop/sdk/internal/plainjson"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object that vmop-cli prints: a pointer to one of the types here.
type Object interface {
	GetObjectKind() schema.ObjectKind
}

// Output is the output of one command. It decodes the JSON of every command, strictly: an unknown
// kind or field is an error. Programs that must work with later versions should decode what they
// need with types of their own.
type Output struct {
	// List is true if it is a List, of any number of items.
	List bool
	// Items are those of a List, or the one object.
	Items []Object
}

type list struct {
	metav1.TypeMeta `json:",inline"`
	// ListMeta is always empty; kubectl's List has it.
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

const kindList = "List"

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Output) UnmarshalJSON(data []byte) error {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("output of vmop-cli: %w", err)
	}
	out := Output{}
	if meta == (metav1.TypeMeta{Kind: kindList, APIVersion: "v1"}) {
		var l list
		if err := strictly(data, &l); err != nil {
			return fmt.Errorf("output of vmop-cli: %w", err)
		}
		if l.Items == nil {
			return errors.New("output of vmop-cli: the List has no items")
		}
		out.List = true
		for i, item := range l.Items {
			object, err := decode(item)
			if err != nil {
				return fmt.Errorf("output of vmop-cli: items[%d]: %w", i, err)
			}
			out.Items = append(out.Items, object)
		}
	} else {
		object, err := decode(data)
		if err != nil {
			return fmt.Errorf("output of vmop-cli: %w", err)
		}
		out.Items = []Object{object}
	}
	*o = out
	return nil
}

// MarshalJSON implements [json.Marshaler]. It overwrites the objects' apiVersion and kind.
func (o Output) MarshalJSON() ([]byte, error) {
	items := []json.RawMessage{}
	for i, object := range o.Items {
		if err := name(object); err != nil {
			return nil, fmt.Errorf("output of vmop-cli: items[%d]: %w", i, err)
		}
		data, err := plainjson.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("output of vmop-cli: items[%d]: %w", i, err)
		}
		items = append(items, data)
	}
	if !o.List {
		if len(items) != 1 {
			return nil, fmt.Errorf("output of vmop-cli: %d objects and no List", len(items))
		}
		return items[0], nil
	}
	return plainjson.Marshal(list{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kindList}, Items: items})
}

func name(object Object) error {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("%T is no object", object)
	}
	for _, k := range Kinds() {
		if k.Type == v.Type().Elem() {
			object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind))
			return nil
		}
	}
	return fmt.Errorf("%T is not of a kind that is printed", object)
}

func decode(data []byte) (Object, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, err
	}
	for _, k := range Kinds() {
		if k.Kind != meta.Kind || k.APIVersion != meta.APIVersion {
			continue
		}
		object, is := reflect.New(k.Type).Interface().(Object)
		if !is {
			return nil, fmt.Errorf("%s is of type %v, which is no object", k.Kind, k.Type)
		}
		if err := strictly(data, object); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Kind, err)
		}
		return object, nil
	}
	return nil, fmt.Errorf("apiVersion %q, kind %q: not of a kind that is printed", meta.APIVersion, meta.Kind)
}

func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the object")
	}
	return nil
}

// Bytes returns a number of bytes in the printed form.
func Bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// ListOf returns the output of a command about any number of objects.
func ListOf[T any, P interface {
	*T
	Object
}](items []T) Output {
	out := Output{List: true}
	for i := range items {
		out.Items = append(out.Items, P(&items[i]))
	}
	return out
}

// One returns the output of a command about one object.
func One(object Object) Output { return Output{Items: []Object{object}} }
