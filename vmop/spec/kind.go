package spec

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is a kind of the group, with what programs need that work on any kind. The
// functions take objects of the kind; what is of another is left alone.
//
// +kubebuilder:object:generate=false
type Kind struct {
	// Name is the kind, Plural its name in URLs.
	Name, Plural string
	// ClusterScoped is true if its objects are in no namespace.
	ClusterScoped bool
	// New makes an object with nothing in it, NewList a list.
	New     func() TypedObject
	NewList func() runtime.Object
	// Default and Validate are [Default] and [Validate] of the kind.
	Default  func(TypedObject)
	Validate func(TypedObject) field.ErrorList

	// noun is what an object is called in a sentence.
	noun string
	// written removes from an object what a manifest must not have.
	written func(TypedObject)
	// defaulted names the fields of a type of the kind's own that have a default.
	defaulted func(reflect.Type) []string
	// object keeps the object where those look who know the kind.
	object func(*Object, TypedObject)
}

// functions are those of a kind whose objects are of a type; written and object may
// be nil.
//
// +kubebuilder:object:generate=false
type functions[P TypedObject] struct {
	setDefaults func(P)
	validate    func(P) field.ErrorList
	written     func(P)
	object      func(*Object, P)
}

func typed[T any, P interface {
	*T
	TypedObject
}](k Kind, f functions[P]) Kind {
	k.ClusterScoped = ClusterScoped(k.Name)
	k.New = func() TypedObject { return P(new(T)) }
	k.Default = func(r TypedObject) {
		if p, is := r.(P); is {
			f.setDefaults(p)
		}
	}
	k.Validate = func(r TypedObject) field.ErrorList {
		p, is := r.(P)
		if !is {
			return nil
		}
		return f.validate(p)
	}
	k.written = func(r TypedObject) {
		if p, is := r.(P); is && f.written != nil {
			f.written(p)
		}
	}
	k.object = func(o *Object, r TypedObject) {
		if p, is := r.(P); is && f.object != nil {
			f.object(o, p)
		}
	}
	return k
}

// ClusterScoped reports whether the objects of a kind of the group are in no namespace.
func ClusterScoped(kind string) bool { return kind == KindClass || kind == KindClusterImage }
