package takeover

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type key struct{ kind, namespace, name string }

// objects are the input by kind, namespace and name. Of duplicates, which a cluster never has, the
// last one counts.
type objects map[key]*unstructured.Unstructured

func index(list []unstructured.Unstructured) objects {
	out := make(objects, len(list))
	for i := range list {
		o := &list[i]
		out[key{o.GetKind(), o.GetNamespace(), o.GetName()}] = o
	}
	return out
}

// ofKind returns the objects of a kind, in no order: findings are sorted.
func (o objects) ofKind(kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for k, object := range o {
		if k.kind == kind {
			out = append(out, object)
		}
	}
	return out
}

func (o objects) has(kind string) bool {
	for k := range o {
		if k.kind == kind {
			return true
		}
	}
	return false
}

func get[T any](o objects, kind, namespace, name string) (*T, bool) {
	object := o[key{kind, namespace, name}]
	if object == nil {
		return nil, false
	}
	return as[T](object)
}

func as[T any](object *unstructured.Unstructured) (*T, bool) {
	out := new(T)
	data, err := json.Marshal(object.Object)
	if err != nil || json.Unmarshal(data, out) != nil {
		return nil, false
	}
	return out, true
}
