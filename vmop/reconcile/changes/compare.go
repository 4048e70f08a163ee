package changes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/plainjson"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Between returns the differences between two manifests of one machine: its labels, its
// annotations and its specification. Both are compared with their defaults, and sizes by value,
// so 1Gi is 1024Mi.
//
// The order is that of the fields in the manifest. Applied one after the other to the JSON of the
// old machine, the changes give that of the new one: entries removed from the end of a list come
// last first.
//
// Networks, disks, references to disks and port forwards are compared entry by entry. An entry
// that became another thing, of another kind or a disk of another name, is replaced as a whole;
// all other lists are always replaced as a whole.
//
// How a change is applied to a running machine follows the table in rules.go, with two
// exceptions. A disk grows in two steps: the cluster enlarges the volume at once, and the guest
// sees a larger disk after a restart, with which an image in a file system grows, too. And CPUs
// or memory beyond the running machine's maximum are granted up to that.
//
// nil stands for a machine without a manifest. Names and namespaces are not compared: for two
// different machines the result is how one would have to change to be like the other. The caller
// knows whether they are the same machine.
func Between(old, new *spec.VirtualMachine, o Options) []Change {
	old, new = manifest.Defaulted(old), manifest.Defaulted(new)
	return compare(old, new, o).changes
}

func compare(old, new *spec.VirtualMachine, o Options) *differ {
	manifest.ForgetFormerImage(old)
	manifest.ForgetFormerImage(new)
	if o.Pod != nil {
		o.PlugsDisks, o.Plugged = true, o.Pod.plugged()
	}
	d := &differ{old: old, new: new, options: o}
	meta := &location{name: "metadata"}
	d.values(&location{parent: meta, name: "labels"}, reflect.ValueOf(old.Labels), reflect.ValueOf(new.Labels))
	d.values(&location{parent: meta, name: "annotations"}, reflect.ValueOf(old.Annotations), reflect.ValueOf(new.Annotations))
	d.structs(&location{name: "spec"}, reflect.ValueOf(&old.Spec).Elem(), reflect.ValueOf(&new.Spec).Elem())
	d.settleDevices()
	return d
}

func (d *differ) structs(at *location, old, new reflect.Value) {
	for i := range old.NumField() {
		tag := old.Type().Field(i).Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if name == "" { // fields of an embedded struct are among the others
			d.structs(at, old.Field(i), new.Field(i))
			continue
		}
		d.values(&location{parent: at, name: name}, old.Field(i), new.Field(i))
	}
}

// values compares what two fields hold. A field counts as absent if it is nil or, where only a
// zero value can mean that, empty; numbers and booleans that are no pointers have a meaningful
// zero.
func (d *differ) values(at *location, old, new reflect.Value) {
	switch t := old.Type(); {
	case t == rawExtension:
		d.leaf(at, old, new, !old.IsNil(), !new.IsNil(), func() bool {
			return sameJSON(old.Interface().(*runtime.RawExtension), new.Interface().(*runtime.RawExtension))
		})
	case t == quantity:
		d.leaf(at, old, new, !old.IsNil(), !new.IsNil(), func() bool { return same(old, new) })
	case t.Kind() == reflect.Struct && t.Implements(marshaler): // such as a time
		d.leaf(at, old, new, true, true, func() bool { return same(old, new) })
	case t.Kind() == reflect.Struct:
		d.structs(at, old, new)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !old.IsNil() && !new.IsNil():
		d.structs(at, old.Elem(), new.Elem())
	case t.Kind() == reflect.Pointer:
		d.leaf(at, old, new, !old.IsNil(), !new.IsNil(), func() bool { return old.Elem().Equal(new.Elem()) })
	case t.Kind() == reflect.Map:
		d.maps(at, old, new)
	case t.Kind() == reflect.Slice:
		d.slices(at, old, new)
	case t.Kind() == reflect.String:
		// A CD drive without an image has an empty name; other empty strings are absent.
		always := at.name == "image"
		d.leaf(at, old, new, always || old.Len() > 0, always || new.Len() > 0, func() bool { return old.Equal(new) })
	default:
		d.leaf(at, old, new, true, true, func() bool { return old.Equal(new) })
	}
}

// The types whose values are compared as a whole.
var (
	quantity     = reflect.TypeFor[*resource.Quantity]()
	rawExtension = reflect.TypeFor[*runtime.RawExtension]()
	marshaler    = reflect.TypeFor[json.Marshaler]()
)

// same compares values as Kubernetes does: quantities by their amount, and an empty list equals
// none.
func same(old, new reflect.Value) bool {
	return equality.Semantic.DeepEqual(old.Interface(), new.Interface())
}

// maps compares two maps of scalars in the order of their keys.
func (d *differ) maps(at *location, old, new reflect.Value) {
	if old.Len() == 0 && new.Len() == 0 {
		return
	}
	keys := old.MapKeys()
	for _, k := range new.MapKeys() {
		if !old.MapIndex(k).IsValid() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		a, b := old.MapIndex(k), new.MapIndex(k)
		d.leaf(&location{parent: at, kind: inMap, name: k.String()}, a, b, a.IsValid(), b.IsValid(), func() bool { return same(a, b) })
	}
}

func (d *differ) slices(at *location, old, new reflect.Value) {
	switch old.Interface().(type) {
	case []spec.Network, []spec.Disk, []spec.HostForward, []spec.BlockDeviceRef:
		d.entries(at, old, new)
	default:
		d.leaf(at, old, new, old.Len() > 0, new.Len() > 0, func() bool { return same(old, new) })
	}
}

// entries compares two lists by position. Plugged disks have no position and are matched by
// claim.
func (d *differ) entries(at *location, old, new reflect.Value) {
	was, hot := d.divide(d.old, old)
	is, wanted := d.divide(d.new, new)
	both := min(len(was), len(is))
	for i := range both {
		d.entry(&location{parent: at, kind: inList, index: is[i], was: was[i]}, old.Index(was[i]), new.Index(is[i]), d.sameThing(old, new, was[i], is[i]))
	}
	for n, i := range slices.Backward(was[both:]) {
		if place := both + n; place != i {
			if d.places == nil {
				d.places = map[int]string{}
			}
			d.places[len(d.changes)] = (&location{parent: at, kind: inList, index: place}).path()
		}
		d.leaf(&location{parent: at, kind: inList, index: i}, old.Index(i), old.Index(i), true, false, nil)
	}
	for _, i := range is[both:] {
		d.leaf(&location{parent: at, kind: inList, index: i}, new.Index(i), new.Index(i), false, true, nil)
	}
	for _, claim := range d.options.Plugged {
		from, had := hot[claim]
		to, has := wanted[claim]
		switch {
		case had && has:
			d.entry(&location{parent: at, kind: inList, index: to, was: from}, old.Index(from), new.Index(to), d.sameThing(old, new, from, to))
		case had:
			d.leaf(&location{parent: at, kind: inList, index: from}, old.Index(from), old.Index(from), true, false, nil)
		case has:
			d.leaf(&location{parent: at, kind: inList, index: to}, new.Index(to), new.Index(to), false, true, nil)
		}
	}
}

func (d *differ) entry(at *location, old, new reflect.Value, same bool) {
	if same {
		d.structs(at, old, new)
	} else {
		d.leaf(at, old, new, true, true, func() bool { return false })
	}
}

// sameThing reports whether two entries are the same thing, so that a difference is one of its
// properties.
func (d *differ) sameThing(old, new reflect.Value, i, j int) bool {
	switch a := old.Index(i).Addr().Interface().(type) {
	case *spec.Network:
		b := new.Index(j).Addr().Interface().(*spec.Network)
		return (a.Tap == nil) == (b.Tap == nil) && (a.User == nil) == (b.User == nil)
	case *spec.Disk:
		b := new.Index(j).Addr().Interface().(*spec.Disk)
		return (a.VolumeClaimTemplate == nil) == (b.VolumeClaimTemplate == nil) &&
			(a.PersistentVolumeClaim == nil) == (b.PersistentVolumeClaim == nil) &&
			(a.Image == nil) == (b.Image == nil) && (a.ContainerDisk == nil) == (b.ContainerDisk == nil) &&
			(a.Cdrom == nil) == (b.Cdrom == nil) &&
			spec.DiskName(d.old.Spec.VM.Disks, i) == spec.DiskName(d.new.Spec.VM.Disks, j)
	case *spec.BlockDeviceRef:
		b := new.Index(j).Addr().Interface().(*spec.BlockDeviceRef)
		return a.Kind == b.Kind && a.Name == b.Name
	}
	return true
}

// leaf records a difference between two values. equal is called only if both are present.
func (d *differ) leaf(at *location, old, new reflect.Value, hadOld, hasNew bool, equal func() bool) {
	if !hadOld && !hasNew || hadOld && hasNew && equal() {
		return
	}
	c := Change{Operation: spec.OperationReplace, Path: at.path()}
	if hadOld {
		c.OldValue = toJSON(old)
	} else {
		c.Operation = spec.OperationAdd
	}
	if hasNew {
		c.NewValue = toJSON(new)
	} else {
		c.Operation = spec.OperationRemove
	}
	c.Applied, c.Reason = d.effect(at)
	if d.options.Judge != nil {
		d.options.Judge(&c)
	}
	switch d.device(at, hadOld, hasNew) {
	case deviceMay:
		d.devices = append(d.devices, len(d.changes))
	case deviceIs:
		c.Applied, c.Reason = AppliedLive, deviceComes
		if hadOld {
			c.Reason = deviceGoes
		}
	}
	d.changes = append(d.changes, c)
}

// sameJSON compares two free-form documents. The order of keys does not matter to their readers;
// the notation of numbers may.
func sameJSON(a, b *runtime.RawExtension) bool {
	x, errX := manifest.RawJSON(a)
	y, errY := manifest.RawJSON(b)
	if errX != nil || errY != nil || bytes.Equal(x, y) {
		return bytes.Equal(x, y)
	}
	u, okU := decodeJSON(x)
	v, okV := decodeJSON(y)
	return okU && okV && reflect.DeepEqual(u, v)
}

func decodeJSON(raw json.RawMessage) (any, bool) {
	var v any
	if len(raw) == 0 {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return v, dec.Decode(&v) == nil
}

func toJSON(v reflect.Value) json.RawMessage {
	text, err := plainjson.Marshal(v.Interface())
	if err != nil {
		// Only a RawExtension without valid JSON gets here, which spec.Validate refuses. It is
		// still reported.
		raw, _ := json.Marshal(fmt.Sprintf("(not JSON: %v)", err))
		return raw
	}
	return text
}
