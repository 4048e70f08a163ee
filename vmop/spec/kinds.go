package spec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kinds returns the kinds of the group. A new one is another line, and a function
// beside its types.
func Kinds() []Kind {
	return []Kind{machineKind(), poolKind(), operationKind(), classKind(), diskKind(), imageKind(), clusterImageKind(), attachmentKind()}
}

func kindNamed(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// kindOf is the kind of an object; a nil of a type is of its kind.
func kindOf(object runtime.Object) (Kind, bool) {
	for _, k := range Kinds() {
		if reflect.TypeOf(k.New()) == reflect.TypeOf(object) {
			return k, true
		}
	}
	return Kind{}, false
}

// AddToScheme makes the types of this package known to a scheme. The error is
// always nil; it is there because a scheme builder wants the signature.
func AddToScheme(scheme *runtime.Scheme) error {
	gv := GroupVersion()
	for _, k := range Kinds() {
		scheme.AddKnownTypes(gv, k.New(), k.NewList())
	}
	metav1.AddToGroupVersion(scheme, gv)
	return nil
}
