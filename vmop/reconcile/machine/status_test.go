package machine

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
	"github.com/vmop/sdk/vmop/spec"
)

// The parts of a status have the names of its fields, and what both types have is the
// same in JSON: the API server drops what it does not know without a word.
func TestPartsHaveTheFieldsOfTheStatus(t *testing.T) {
	check := func(part, whole reflect.Type) {
		known := map[string]reflect.Type{}
		for i, name := range fieldNames(whole) {
			known[name] = plain(whole.Field(i).Type)
		}
		for i, name := range fieldNames(part) {
			if has, want := plain(part.Field(i).Type), known[name]; has != want && has != reflect.TypeFor[reportedCondition]() {
				t.Errorf("%s.%s is %v, and of %s %v", part, name, has, whole, want)
			}
		}
	}
	status := reflect.TypeFor[spec.VirtualMachineStatus]()
	check(reflect.TypeFor[operatorStatus](), status)
	check(reflect.TypeFor[stoppedStatus](), status)
	check(reflect.TypeFor[reportedCondition](), reflect.TypeFor[spec.Condition]())
}

// plain is what a pointer points to or a list is of.
func plain(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// Each field of a status is somebody's: the operator's, the runner's, or that of a program
// which hands out machines. What the operator says in the runner's name is the runner's.
func TestEachFieldOfTheStatusHasOneAuthor(t *testing.T) {
	owners := map[string]string{"assignment": "others", "consoleUser": "others", "conditions": "all"}
	add := func(fields []string, owner string) {
		for _, name := range fields {
			if has := owners[name]; has != "" && has != "all" {
				t.Errorf("%s is of both %s and %s", name, has, owner)
			} else if has == "" {
				owners[name] = owner
			}
		}
	}
	add(operatorFields, "the operator")
	add(fieldNames(reflect.TypeFor[vmstatus.Status]()), "the runner")
	for _, name := range fieldNames(reflect.TypeFor[stoppedStatus]()) {
		if owner := owners[name]; owner != "the runner" && owner != "all" {
			t.Errorf("%s of a machine that does not run is of %s", name, owner)
		}
	}
	for _, name := range fieldNames(reflect.TypeFor[spec.VirtualMachineStatus]()) {
		if owners[name] == "" {
			t.Errorf("%s is nobody's", name)
		}
		delete(owners, name)
	}
	if diff := cmp.Diff(map[string]string{}, owners); diff != "" {
		t.Errorf("there are no such fields: %s", diff)
	}
}
