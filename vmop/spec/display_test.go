package spec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
)

// Each protocol of the table is a field of displays, in the list of their servers, and
// has the fields of its ports.
func TestDisplayServersAreTheTable(t *testing.T) {
	var d Display
	var keys, table, listed []string
	for i, v := 0, reflect.ValueOf(&d).Elem(); i < v.NumField(); i++ {
		if f := v.Field(i); f.Type().Implements(reflect.TypeFor[displayServer]()) {
			f.Set(reflect.New(f.Type().Elem()))
			key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			keys = append(keys, key)
		}
	}
	for _, p := range limits.DisplayProtocols() {
		table = append(table, p.Name)
	}
	for s := range d.servers {
		listed = append(listed, s.protocol())
		row := limits.Display(s.protocol())
		for i, p := range row.Ports {
			number := int32(i + 1)
			*s.port(i) = &number
			field := fieldOf(reflect.ValueOf(s).Elem(), p.Field)
			if !field.IsValid() || field.Interface().(*int32) != &number {
				t.Errorf("port %d of %s is not its field %s", i, row.Name, p.Field)
			}
		}
	}
	if !slices.Equal(keys, table) || !slices.Equal(listed, table) {
		t.Errorf("the table has %v, displays %v, and the list of their servers %v", table, keys, listed)
	}
}

// fieldOf is a field by its key in JSON.
func fieldOf(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == key {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// The ports of pods and services keep the names that they have in clusters.
func TestDisplayPortNames(t *testing.T) {
	for name, field := range map[string]string{
		names.SPICEPortName: "spec.vm.display.spice.port", names.VNCPortName: "spec.vm.display.vnc.port",
		names.WebsocketPortName: "spec.vm.display.vnc.websocket", "http": "",
	} {
		if got := DisplayPortField(name); got != field {
			t.Errorf("port %s comes from %q, want %q", name, got, field)
		}
	}
}
