package runnerconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// Each protocol of the table is a field of displays, in the list of their servers, has
// the fields of its ports, is copied, and becomes a server of QEMU.
func TestDisplayServersAreTheTable(t *testing.T) {
	var d Display
	var keys, table, listed []string
	for i, v := 0, reflect.ValueOf(&d).Elem(); i < v.NumField(); i++ {
		if f := v.Field(i); f.Type().Implements(reflect.TypeFor[displayServer]()) {
			f.Set(reflect.New(f.Type().Elem()))
			keys = append(keys, key(v.Type().Field(i)))
		}
	}
	for _, p := range limits.DisplayProtocols() {
		table = append(table, p.Name)
	}
	for s := range d.servers {
		listed = append(listed, string(s.protocol()))
		row := s.protocol().Row()
		of := reflect.ValueOf(s).Elem()
		for i, p := range row.Ports {
			number := i + 1
			*s.port(i) = &number
			at := slices.IndexFunc(reflect.VisibleFields(of.Type()), func(f reflect.StructField) bool { return key(f) == p.Field })
			if at < 0 || of.Field(at).Interface().(*int) != &number {
				t.Errorf("port %d of %s is not its field %s", i, row.Name, p.Field)
			}
		}
		var other Display
		other.AddServer(row.Name)
		if added := slices.Collect(other.servers); len(added) != 1 || added[0].protocol() != s.protocol() {
			t.Errorf("%s is added as %+v", row.Name, added)
		}
		var m qemucmd.Display
		s.machine(&m, listening{}, false)
		if reflect.DeepEqual(m, qemucmd.Display{}) {
			t.Errorf("QEMU gets no server of %s", row.Name)
		}
	}
	copied := d
	for at := range copied.slots {
		at.unshare()
	}
	was, is := slices.Collect(d.servers), slices.Collect(copied.servers)
	if !reflect.DeepEqual(was, is) || slices.ContainsFunc(is, func(s displayServer) bool { return slices.Contains(was, s) }) {
		t.Errorf("%+v is copied as %+v", was, is)
	}
	if !slices.Equal(keys, table) || !slices.Equal(listed, table) {
		t.Errorf("the table has %v, displays %v, and the list of their servers %v", table, keys, listed)
	}
}

func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
