package spec

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Each kind has all that those need who work on any of them, under names that agree.
func TestKindsAreComplete(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		object := k.New()
		if name := reflect.TypeOf(object).Elem().Name(); name != k.Name || k.Plural == "" || k.noun == "" {
			t.Errorf("%s is called %s, %q, %q", name, k.Name, k.Plural, k.noun)
		}
		for _, o := range []runtime.Object{object, k.NewList()} {
			kinds, _, err := scheme.ObjectKinds(o)
			if err != nil || len(kinds) != 1 || kinds[0].GroupVersion() != GroupVersion() {
				t.Errorf("%T is known as %v: %v", o, kinds, err)
			}
		}
		if errs := k.Validate(object); len(errs) == 0 {
			t.Errorf("%s: one with nothing in it is valid", k.Name)
		}
		object.SetName("a")
		k.Default(object)
		data, err := Marshal(object)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		loaded, _ := Load("a.yaml", data, Options{})
		if len(loaded) != 1 || loaded[0].Kind != k.Name || reflect.TypeOf(loaded[0].Typed) != reflect.TypeOf(object) {
			t.Errorf("%s: loaded %+v\n%s", k.Name, loaded, data)
		}
		for _, other := range Kinds() {
			if other.Name != k.Name && other.Validate(object) != nil {
				t.Errorf("%s is judged by %s", k.Name, other.Name)
			}
		}
	}
}
