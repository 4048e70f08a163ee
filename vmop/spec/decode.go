package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:generate=false

// decoder fills typed objects from nodes, and collects what does not fit. It
// is as strict as the API server with the resource definition: unknown fields,
// wrong types, missing required fields and empty values are faults.
type decoder struct {
	lenient  bool
	faults   faults
	warnings faults
	fields   map[reflect.Type][]jsonField
}

func (d *decoder) fault(n *node, path, format string, args ...any) {
	d.faults.add(fault{line: n.line, path: path, message: fmt.Sprintf(format, args...)})
}

func (d *decoder) fieldsOf(t reflect.Type) []jsonField {
	if d.fields == nil {
		d.fields = map[reflect.Type][]jsonField{}
	}
	if _, ok := d.fields[t]; !ok {
		d.fields[t] = jsonFields(t)
	}
	return d.fields[t]
}

// value decodes a node that is not null.
func (d *decoder) value(n *node, v reflect.Value, path string) {
	switch v.Interface().(type) {
	case resource.Quantity:
		d.quantity(n, v, path)
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: n.bytes()}))
		return
	case metav1.Time:
		d.scalarByJSON(n, v, path, "a time of RFC 3339 such as 2026-12-31T23:59:59Z")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		d.scalarByJSON(n, v, path, "a "+v.Type().Name())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if n.kind != mapNode {
			d.mismatch(n, path, "a mapping")
			return
		}
		d.object(n, v, path)
	case reflect.Map:
		d.mapValue(n, v, path)
	case reflect.Slice:
		d.slice(n, v, path)
	case reflect.String:
		if n.kind != stringNode {
			d.mismatch(n, path, "a string")
			return
		}
		v.SetString(n.text)
	case reflect.Bool:
		if n.kind != boolNode {
			d.mismatch(n, path, "true or false")
			return
		}
		v.SetBool(n.text == "true")
	case reflect.Int32, reflect.Int64:
		d.integer(n, v, path)
	default:
		d.scalarByJSON(n, v, path, "a "+v.Type().Name())
	}
}

func (d *decoder) object(n *node, v reflect.Value, path string) {
	fields := d.fieldsOf(v.Type())
	var meant []string
	for _, e := range n.entries {
		i := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == e.key })
		at := child(path, e.key)
		if i < 0 {
			meant = append(meant, d.unknown(e, at, fields))
			continue
		}
		f := fields[i]
		target := v.FieldByIndex(f.index)
		// Faults of a field are reported where its key stands, not where a
		// value begins that may be lines further down.
		value := *e.value
		if value.kind != mapNode && value.kind != listNode {
			value.line = e.line
		}
		if value.kind == nullNode {
			d.null(&value, f, at)
			continue
		}
		if f.ours && value.kind == stringNode && value.text == "" && f.defaulted && f.owner != reflect.TypeFor[VirtualMachineStatus]() && f.owner != reflect.TypeFor[Condition]() {
			d.fault(&value, at, "is empty; remove it to have the default, or give a value")
			continue
		}
		if f.typ == reflect.TypeFor[*runtime.RawExtension]() && f.owner != reflect.TypeFor[AwaitingChange]() && value.kind != mapNode {
			// Not shown, because user data often holds passwords.
			d.fault(&value, at, "is %s, expected a mapping", value.kind)
			continue
		}
		d.value(&value, target, at)
	}
	for _, f := range fields {
		if f.ours && !f.optional && !f.defaulted && n.get(f.name) == nil && !slices.Contains(meant, f.name) {
			hint := ""
			if f.owner == reflect.TypeFor[Cdrom]() {
				hint = `; write "" for an empty drive`
			}
			d.faults.add(fault{line: n.line, path: child(path, f.name), message: "is required but missing" + hint, missing: true})
		}
	}
}

// unknown decides about a field that there is not, and gives the one that may be meant, or
// an empty string.
func (d *decoder) unknown(e entry, path string, fields []jsonField) (meant string) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	message := "there is no such field"
	meant = nearest(e.key, names)
	if meant != "" {
		message += fmt.Sprintf("; did you mean %q?", meant)
	} else if len(names) <= 12 {
		message += "; there are " + strings.Join(names, ", ")
	}
	if d.lenient {
		d.warnings.add(fault{line: e.line, path: path, message: message})
		return "" // it is dropped: the missing one is to be reported
	}
	d.faults.add(fault{line: e.line, path: path, message: message, unknown: true, meant: meant})
	return meant
}

// null decides about a field whose value is null. The API server takes null
// for "not given" only where the resource definition has a default.
func (d *decoder) null(n *node, f jsonField, path string) {
	if !f.ours || f.defaulted || f.name == "metadata" || f.owner == reflect.TypeFor[AwaitingChange]() {
		return
	}
	t := f.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		if t != reflect.TypeFor[resource.Quantity]() {
			d.fault(n, path, "has no value; write {} for an empty mapping, or remove it")
			return
		}
	case reflect.Slice:
		d.fault(n, path, "has no value; write [] for an empty list, or remove it")
		return
	}
	d.fault(n, path, "has no value; give one, or remove it")
}

func (d *decoder) mapValue(n *node, v reflect.Value, path string) {
	if n.kind != mapNode {
		d.mismatch(n, path, "a mapping")
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(n.entries)))
	for _, e := range n.entries {
		at := path + "[" + shortKey(e.key) + "]"
		item := reflect.New(t.Elem()).Elem()
		if e.value.kind == nullNode {
			if t.Elem().Kind() != reflect.Pointer {
				d.fault(&node{line: e.line}, at, `has no value; write "" for an empty one, or remove it`)
				continue
			}
		} else {
			value := *e.value
			value.line = e.line
			d.value(&value, item, at)
		}
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(t.Key()), item)
	}
}

func (d *decoder) slice(n *node, v reflect.Value, path string) {
	if n.kind != listNode {
		d.mismatch(n, path, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item.kind == nullNode {
			d.fault(item, at, "has no value; give one, or remove the item")
			continue
		}
		d.value(item, v.Index(i), at)
	}
}

func (d *decoder) integer(n *node, v reflect.Value, path string) {
	if n.kind != numberNode {
		d.mismatch(n, path, "a whole number")
		return
	}
	text := n.text
	if !isInteger(text) {
		// 5e3 is as good an integer as 5000; the API server agrees.
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			d.fault(n, path, "is %s, expected a whole number", abbreviate(n.source))
			return
		}
		text = strconv.FormatFloat(f, 'f', 0, 64)
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v.OverflowInt(i) {
		bits := v.Type().Bits()
		d.fault(n, path, "is %s, expected a whole number from %d to %d", abbreviate(n.source), int64(-1)<<(bits-1), int64(math.MaxInt64)>>(64-bits))
		return
	}
	v.SetInt(i)
}

func (d *decoder) quantity(n *node, v reflect.Value, path string) {
	const expected = `expected a quantity such as 4Gi, 512M or "1.5Gi"`
	text := n.text
	switch n.kind {
	case numberNode:
		if !isInteger(text) {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
				d.fault(n, path, "is the number %s, %s", abbreviate(n.source), expected)
				return
			}
			text = strconv.FormatFloat(f, 'f', 0, 64)
		}
	case stringNode:
	default:
		d.mismatch(n, path, "a quantity such as 4Gi or 512M")
		return
	}
	if err := checkQuantityText(text); err != nil {
		d.fault(n, path, "is %q, which %v", abbreviate(text), err)
		return
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		d.fault(n, path, "is %q, %s%s", text, expected, quantityHint(text))
		return
	}
	v.Set(reflect.ValueOf(q))
}

// quantityHint recognizes the notations of QEMU and libvirt.
func quantityHint(s string) string {
	compact := strings.ReplaceAll(s, " ", "")
	for _, suffix := range []string{"iB", "B"} {
		if rest, ok := strings.CutSuffix(compact, suffix); ok {
			if suffix == "iB" {
				rest += "i"
			}
			compact = rest
			break
		}
	}
	if compact != s {
		if _, err := resource.ParseQuantity(compact); err == nil {
			return fmt.Sprintf("; write %s", compact)
		}
	}
	return ""
}

// scalarByJSON lets a type with its own JSON form decide.
func (d *decoder) scalarByJSON(n *node, v reflect.Value, path, expected string) {
	p := reflect.New(v.Type())
	if err := json.Unmarshal(n.bytes(), p.Interface()); err != nil {
		d.mismatch(n, path, expected)
		return
	}
	v.Set(p.Elem())
}

// mismatch reports a value of the wrong type, and how to write the right one
// where YAML's reading of it is the likely cause.
func (d *decoder) mismatch(n *node, path, expected string) {
	found := n.kind.String()
	hint := ""
	switch n.kind {
	case boolNode, numberNode:
		found += fmt.Sprintf(" (%s)", abbreviate(n.source))
		if expected == "a string" {
			hint = fmt.Sprintf("; put it in quotes: %q", abbreviate(n.source))
		}
	case stringNode:
		found += fmt.Sprintf(" (%s)", abbreviate(strconv.Quote(n.text)))
		kind, _ := nullNode, ""
		if n.text != "" {
			kind, _ = resolvePlain(n.text)
		}
		if expected == "true or false" && kind == boolNode || expected == "a whole number" && kind == numberNode {
			hint = "; remove the quotes"
		}
	}
	d.fault(n, path, "is %s, expected %s%s", found, expected, hint)
}

// +kubebuilder:object:generate=false
type jsonField struct {
	name      string
	index     []int
	typ       reflect.Type
	owner     reflect.Type
	ours      bool // the struct is one of this package
	optional  bool
	defaulted bool
}

// jsonFields lists the fields of a struct, those of embedded structs without a
// name of their own included.
func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		if !ok || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" && f.Anonymous {
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		out = append(out, jsonField{
			name:      name,
			index:     []int{i},
			typ:       f.Type,
			owner:     t,
			ours:      t.PkgPath() == reflect.TypeFor[Machine]().PkgPath(),
			optional:  strings.Contains(options, "omitempty") || f.Anonymous,
			defaulted: slices.Contains(defaultedFields(t), name),
		})
	}
	return out
}

// defaultedFields names the fields of a type that have a default in the
// resource definition. A test compares it with the generated definitions.
func defaultedFields(t reflect.Type) []string {
	for _, k := range Kinds() {
		if fields := k.defaulted(t); fields != nil {
			return fields
		}
	}
	return nil
}
