package inspect_test

import (
	"reflect"
	"testing"

	"github.com/vmop/sdk/vmop/inspect"
)

// What is printed as JSON has the names of package output: a second set of them would be
// nobody's, and somebody would use it.
func TestReportHasNoNamesInJSON(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(typ reflect.Type)
	look = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if seen[typ] || typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[inspect.Report]().PkgPath() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Tag.Get("json") != "" {
				t.Errorf("%v.%s is called %q in JSON", typ, f.Name, f.Tag.Get("json"))
			}
			look(typ.Field(i).Type)
		}
	}
	look(reflect.TypeFor[inspect.Report]())
	if len(seen) < 10 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
