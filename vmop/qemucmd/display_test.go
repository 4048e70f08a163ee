package qemucmd

import (
	"reflect"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/limits"
)

// Each protocol of the table of package limits is a field of displays, in the list of
// their servers, and a kind with a socket; a QEMU may lack those that say how to see it.
func TestDisplayServersAreTheTable(t *testing.T) {
	var d Display
	fields := 0
	for i, v := 0, reflect.ValueOf(&d).Elem(); i < v.NumField(); i++ {
		if f := v.Field(i); f.Type().Implements(reflect.TypeFor[displayServer]()) {
			f.Set(reflect.New(f.Type().Elem()))
			fields++
		}
	}
	var table, listed, rows []DisplayProtocol
	for _, p := range limits.DisplayProtocols() {
		table = append(table, DisplayProtocol(p.Name))
	}
	for s := range d.servers {
		listed = append(listed, s.protocol())
	}
	for _, k := range kinds {
		if k.display == "" {
			continue
		}
		rows = append(rows, k.display)
		if k.display.Socket().FileName() == "" {
			t.Errorf("%s has no socket", k.display)
		}
	}
	if fields != len(table) || !slices.Equal(listed, table) || !slices.Equal(rows, table) {
		t.Errorf("the table has %v, displays %d, the list of their servers %v, and the kinds %v", table, fields, listed, rows)
	}
	for _, n := range ServerNeeds() {
		var h Host
		if h.Serves(n.Protocol) || (n.Type == "") == (n.Command == "") || n.Lacks == "" || n.Remedy == "" {
			t.Errorf("%+v", n)
		}
		h.SetServes(n.Protocol, true)
		if !h.Serves(n.Protocol) {
			t.Errorf("a host does not keep that it has %s", n.Protocol)
		}
	}
}
