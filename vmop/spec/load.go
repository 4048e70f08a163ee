package spec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// +kubebuilder:object:generate=false

// Options chooses how [Load] treats a file. The zero value is strict, and
// returns objects as they were written.
type Options struct {
	// Lenient turns unknown fields into warnings of the object. They are
	// dropped, as the API server drops them.
	Lenient bool
	// Kind is the kind, of this group, of documents that have neither apiVersion nor
	// kind, such as [KindVirtualMachine]: what a program wrote of an object that it made
	// as a literal, whose TypeMeta is empty. Without it such a document is a problem, as
	// it is for the API server.
	Kind string
	// Default applies the defaults of the kind, such as [Default].
	Default bool
	// Validate applies the validation of the kind, such as [Validate], and adds
	// what it finds to the problems, with file and line.
	Validate bool
}

// Load reads all objects of a stream of YAML documents or JSON values. The
// name is used in messages only.
//
// Virtual machines and pools are decoded strictly: unknown fields, wrong
// types, duplicate keys and values that the API server would not take are
// problems. Objects of other groups come back untouched, lists of kind List
// are taken apart. YAML is read as kubectl reads it, by version 1.1: an
// unquoted yes, on or off is a boolean.
//
// If anything is wrong, the error is a [*LoadError] with every problem, and
// the objects are those that have none.
func Load(name string, data []byte, opts Options) ([]Object, error) {
	l := &loader{file: name, opts: opts}
	for _, doc := range l.parse(data) {
		l.document(doc)
	}
	return l.objects, loadError(l.problems, l.warnings)
}

// +kubebuilder:object:generate=false
type loader struct {
	file     string
	opts     Options
	objects  []Object
	problems []Problem
	warnings []Problem // of the objects that are left out
	faults   []fault   // of the document
}

// parse cuts the data into documents and reports those that are no YAML or
// JSON. Like kubectl it takes for JSON what begins with a brace, and tries
// YAML if it is not.
func (l *loader) parse(data []byte) []document {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		docs, err := parseJSON(data)
		var syntax *jsonError
		switch {
		case err == nil:
			return docs
		case strings.HasSuffix(l.file, ".json") && errors.As(err, &syntax):
			l.problems = append(l.problems, Problem{File: l.file, Line: syntax.line, Message: syntax.Error()})
			return docs
		}
	}
	docs := splitYAML(data)
	for i, doc := range docs {
		docs[i] = parseYAML(doc)
	}
	return docs
}

// document goes through one document. If its YAML is wrong in a way that leaves its meaning open,
// such as by a duplicate key, its fields are still checked, to report all problems at once.
func (l *loader) document(doc document) {
	before := len(l.objects)
	if len(doc.faults) > 0 {
		o := l.header(doc.root, doc.raw)
		l.report(&o, doc.faults)
	}
	if doc.root != nil && !doc.expanded {
		l.faults = doc.faults
		root := doc.root
		if l.opts.Kind != "" && root.kind == mapNode && root.get("apiVersion") == nil && root.get("kind") == nil {
			root = root.withHeader(GroupVersion().String(), l.opts.Kind)
		}
		l.object(root, doc.raw)
	}
	if len(doc.faults) > 0 {
		l.objects = l.objects[:before]
	}
}

func (l *loader) report(o *Object, faults []fault) {
	for _, f := range faults {
		p := o.Problem(f.path, f.message)
		p.Line = f.line
		l.problems = append(l.problems, p)
	}
}

func (l *loader) header(root *node, raw []byte) Object {
	o := Object{File: l.file, Raw: raw, root: root}
	if root != nil {
		o.Line = root.line
		o.APIVersion = root.stringAt("apiVersion")
		o.Kind = root.stringAt("kind")
		o.Namespace = root.stringAt("metadata", "namespace")
		o.Name = root.stringAt("metadata", "name")
	}
	return o
}

func (l *loader) object(root *node, raw []byte) {
	o := l.header(root, raw)
	problem := func(path, format string, args ...any) {
		l.problems = append(l.problems, o.Problem(path, fmt.Sprintf(format, args...)))
	}
	if root.kind == nullNode {
		return
	}
	if root.kind != mapNode {
		problem("", "the document is %s, expected an object with apiVersion and kind", root.kind)
		return
	}
	group, version, ours := strings.Cut(o.APIVersion, "/")
	ours = ours && group == GroupName || o.APIVersion == GroupName
	var known []string
	for _, k := range Kinds() {
		known = append(known, k.Name)
	}
	kind, ofKind := kindNamed(o.Kind)
	item, listed := kindNamed(strings.TrimSuffix(o.Kind, "List"))
	switch {
	case o.Kind == "":
		problem("kind", "is required but missing; expected for example %s", KindVirtualMachine)
	case o.APIVersion == "":
		problem("apiVersion", "is required but missing%s", apiVersionHint(o.Kind, known))
	case o.APIVersion == "v1" && o.Kind == "List":
		l.list(&o, "")
	case !ours:
		if g := nearest(group, []string{GroupName}); g != "" && slices.Contains(known, o.Kind) {
			problem("apiVersion", "is %q; did you mean %q?", o.APIVersion, GroupVersion())
			return
		}
		l.objects = append(l.objects, o)
	case version != Version:
		problem("apiVersion", "is %q, expected %q, the only version there is", o.APIVersion, GroupVersion())
	case ofKind:
		l.decode(o, &kind)
	case listed:
		l.list(&o, item.Name)
	default:
		hint := "; there are " + enumerated(known)
		if k := nearest(o.Kind, known); k != "" {
			hint = fmt.Sprintf("; did you mean %q? There are %s", k, enumerated(known))
		}
		problem("kind", "there is no kind %q in %s%s", o.Kind, GroupVersion(), hint)
	}
}

func apiVersionHint(kind string, known []string) string {
	if slices.Contains(known, kind) {
		return fmt.Sprintf("; expected %q", GroupVersion())
	}
	return ""
}

// list lets the items of a typed list leave out their kind.
func (l *loader) list(o *Object, kind string) {
	items := o.root.get("items")
	if items == nil || items.kind == nullNode {
		return
	}
	if items.kind != listNode {
		l.problems = append(l.problems, o.Problem("items", fmt.Sprintf("is %s, expected a list", items.kind)))
		return
	}
	for i, item := range items.items {
		if item.kind != mapNode {
			p := o.Problem(fmt.Sprintf("items[%d]", i), fmt.Sprintf("is %s, expected an object with apiVersion and kind", item.kind))
			l.problems = append(l.problems, p)
			continue
		}
		if kind != "" {
			item = item.withHeader(o.APIVersion, kind)
		}
		l.object(item, item.bytes())
	}
}

func (n *node) withHeader(apiVersion, kind string) *node {
	out := *n
	out.entries = slices.Clone(n.entries)
	add := func(key, value string) {
		if out.get(key) == nil {
			v := &node{kind: stringNode, text: value, source: value, line: n.line}
			out.entries = append(out.entries, entry{key: key, line: n.line, value: v})
		}
	}
	add("apiVersion", apiVersion)
	add("kind", kind)
	return &out
}

// decode runs the steps that all kinds share.
func (l *loader) decode(o Object, kind *Kind) {
	d := &decoder{lenient: l.opts.Lenient}
	o.Typed = kind.New()
	d.value(o.root, reflect.ValueOf(o.Typed).Elem(), "")
	kind.object(&o, o.Typed)
	before := len(l.problems)
	decoding := d.faults.all(o.Line)
	l.report(&o, decoding)
	for _, w := range d.warnings.all(o.Line) {
		p := o.Problem(w.path, w.message)
		p.Line = w.line
		o.Warnings = append(o.Warnings, p)
	}
	if vm := o.VirtualMachine; vm != nil {
		if warning := ProvisioningWarning(&vm.Spec); warning != "" {
			o.Warnings = append(o.Warnings, o.Problem("spec.provisioning.userData", warning))
		}
	}
	if l.opts.Validate {
		var found faults
		for _, e := range kind.Validate(o.Typed) {
			explained := func(f fault) bool { return explains(f, e, o.Written(e.Field)) }
			if !slices.ContainsFunc(decoding, explained) && !slices.ContainsFunc(l.faults, explained) {
				found.add(fault{line: o.lineOf(e.Field), path: e.Field, message: e.ErrorBody()})
			}
		}
		l.report(&o, found.all(o.Line))
	}
	if len(l.problems) > before {
		l.warnings = append(l.warnings, o.Warnings...)
		return
	}
	if l.opts.Default {
		kind.Default(o.Typed)
	}
	l.objects = append(l.objects, o)
}

// explains reports whether a fault may be the cause of a finding, which would then be about
// a value that the file does not have: one stands inside of the other; or they are
// neighbours, and the file has no value where the finding is; or the finding mentions the
// faulty field, or one around it and not around both. What is only missing says nothing
// about its neighbours.
func explains(f fault, finding *field.Error, written bool) bool {
	at := finding.Field
	if f.path == at || inside(f.path, at) || inside(at, f.path) {
		return true
	}
	if f.missing {
		return false
	}
	parent, name := parentOf(f.path)
	if f.unknown {
		if name = f.meant; name != "" && inside(at, child(parent, name)) {
			return true
		}
	}
	if inside(at, parent) && !written && !strings.ContainsAny(at[len(parent)+1:], ".[") {
		return true
	}
	for parent != "" {
		if inside(at, parent) && !inside(at, child(parent, name)) && mentions(finding.Detail, name) {
			return true
		}
		if strings.HasSuffix(parent, "]") {
			return false // a finding about the whole list is hardly about this item
		}
		parent, name = parentOf(parent)
	}
	return false
}

// mentions reports whether a text is about a field, and not merely about one inside of it.
func mentions(text, field string) bool {
	part := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '[' || r == ']'
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return !part(r) }), func(word string) bool {
		_, last := parentOf(strings.TrimRight(word, "."))
		return last == field && field != ""
	})
}

func inside(path, of string) bool {
	return of != "" && len(path) > len(of) && strings.HasPrefix(path, of) && (path[len(of)] == '.' || path[len(of)] == '[')
}

func enumerated(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}
