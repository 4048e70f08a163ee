package main

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

//go:generate sh -c "go run . __schema >../../docs/vmop-cli.schema.json"

type described struct {
	// name is that of its schema, call an example command line, about a description.
	name, call, about string
	list              bool
	of                any
}

func (d *described) command() string {
	name, _, _ := strings.Cut(d.call, " ")
	return name
}

// The two forms of output.
const (
	many = true
	one  = false
)

// outputs lists all but those of render: manifests, configurations and command lines have their own
// definitions. The table in the documents is generated from it.
func outputs() []described {
	return []described{
		{"changes", "changes", "what a change of a manifest needs, or what waits for a restart", many, output.Changes{}},
		{"describe", "describe", "a machine of this host or of a cluster, and what to do next", one, output.Machine{}},
		{"diff", "diff", "what applying manifests would change in a cluster", many, output.Changes{}},
		{"disk-describe", "disk describe --cluster", "a disk of a cluster", one, output.VirtualDisk{}},
		{"disk-list", "disk list", "the disks of a machine of this host", many, output.Disk{}},
		{"disk-done", "disk create|upload|download|resize|delete|attach|detach --cluster", "what became of what was asked for of a disk of a cluster", one, output.DiskResult{}},
		{"disk-list-cluster", "disk list --cluster", "the disks of a cluster", many, output.VirtualDisk{}},
		{"doctor", "doctor", "what this host has for machines", many, output.HostFinding{}},
		{"events", "events", "what happened to a machine, the oldest first", many, output.Event{}},
		{"guest-info", "guest info", "what the guest agent says", one, output.GuestInfo{}},
		{"image-list", "image list", "the images that were fetched to this host, the latest first", many, output.CachedImage{}},
		{"inspect", "inspect NAME", "a machine of this host or of a cluster, and what its QEMU or its pod says", one, output.Machine{}},
		{"inspect-image", "inspect FILE", "an image", one, output.DiskImage{}},
		{"leftovers", "leftovers", "what deleted machines have left in a cluster", many, output.Leftover{}},
		{"list", "list", "the machines of this host or of a cluster", many, output.Machine{}},
		{"restart", "restart --cluster", "what became of machines of a cluster that were restarted", many, output.Operation{}},
		{"snapshot-list", "snapshot list", "the snapshots of a machine of this host, the oldest first", many, output.Snapshot{}},
		{"spice", "spice --print", "the connection to a display", one, output.DisplayConnection{}},
		{"spice-proxy", "spice --proxy-only", "the port that leads to a display", one, output.DisplayProxy{}},
		{"start", "start --cluster", "what became of machines of a cluster that were started", many, output.Operation{}},
		{"stop", "stop --cluster", "what became of machines of a cluster that were stopped", many, output.Operation{}},
		{"takeover", "takeover", "what becomes of a cluster of VM-Operator", many, output.TakeoverFinding{}},
		{"top", "top", "what machines of this host use", many, output.Metrics{}},
		{"validate", "validate", "what there is to say of manifests, what is wrong at the end", many, output.ManifestFinding{}},
		{"version", "version", "this program, and the QEMU that it finds", one, output.Version{}},
		{"vnc", "vnc --print", "the connection to a display", one, output.DisplayConnection{}},
		{"vnc-proxy", "vnc --proxy-only", "the port that leads to a display", one, output.DisplayProxy{}},
		{"wait", "wait", "the machine of this host that was waited for", one, output.Machine{}},
	}
}

const schemaName = "__schema"

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: schemaName, Usage: "print the JSON schema of what -o json prints", Hidden: true,
		Action: func(*cli.Context) error { return textout.WriteJSON(p.stdout, schemaOf(outputs())) },
	}
}

type schema struct {
	Schema      string   `json:"$schema,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Ref         string   `json:"$ref,omitempty"`
	Type        []string `json:"type,omitempty"`
	Format      string   `json:"format,omitempty"`
	Items       *schema  `json:"items,omitempty"`
	// Required are the properties that are never left out, More is the schema of other properties.
	Properties map[string]*schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	More       *schema            `json:"additionalProperties,omitempty"`
	Defs       map[string]*schema `json:"$defs,omitempty"`
}

const defs = "#/$defs/"

// schemaOf describes outputs: $defs has one for each by its name, and the Go types that they
// consist of. Additional fields are allowed.
func schemaOf(all []described) *schema {
	s := &schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "vmop-cli",
		Description: "What vmop-cli prints with -o json: $defs has a schema for each command. Fields may be added.",
		Defs:        map[string]*schema{},
	}
	for _, o := range all {
		d := *s.of(reflect.TypeOf(o.of))
		if o.list {
			d = schema{
				Type: []string{"object"}, Required: []string{"apiVersion", "kind", "metadata", "items"},
				Properties: map[string]*schema{
					"apiVersion": {Type: []string{"string"}}, "kind": {Type: []string{"string"}}, "metadata": {Type: []string{"object"}, More: &schema{}},
					"items": {Type: []string{"array"}, Items: s.of(reflect.TypeOf(o.of))},
				},
			}
		}
		d.Description = "vmop-cli " + o.call + ": " + o.about
		s.Defs[o.name] = &d
	}
	return s
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
)

// of returns the schema of a Go type, as package encoding/json writes it.
func (s *schema) of(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &schema{Type: []string{"string"}, Format: "date-time"}
	case reflect.TypeFor[metav1.Time]():
		return &schema{Type: []string{"string", "null"}, Format: "date-time"}
	case reflect.TypeFor[spec.VirtualMachineSpec]():
		// The content of manifests is defined in deploy/crds.
		return &schema{Type: []string{"object"}, More: &schema{}}
	case reflect.TypeFor[resource.Quantity]():
		return &schema{Type: []string{"string"}}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return orNull(s.of(t.Elem()))
	case t.Kind() == reflect.Interface, t.Implements(jsonMarshaler), reflect.PointerTo(t).Implements(jsonMarshaler):
		return &schema{}
	case t.Implements(textMarshaler), reflect.PointerTo(t).Implements(textMarshaler):
		return &schema{Type: []string{"string"}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: []string{"boolean"}}
	case reflect.String:
		return &schema{Type: []string{"string"}}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: []string{"number"}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{Type: []string{"string", "null"}}
		}
		return &schema{Type: []string{"array", "null"}, Items: s.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: []string{"object", "null"}, More: s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	return &schema{Type: []string{"integer"}}
}

// orNull returns a schema that also allows null. A schema without a type allows anything.
func orNull(s *schema) *schema {
	if s.Ref != "" || len(s.Type) == 0 || s.Type[len(s.Type)-1] == "null" {
		return s // nil pointers to objects are omitted
	}
	out := *s
	out.Type = append(out.Type[:len(out.Type):len(out.Type)], "null")
	return &out
}

// object refers to the schema of a struct, which is created once.
func (s *schema) object(t reflect.Type) *schema {
	name := path.Base(t.PkgPath()) + "." + t.Name()
	if t.PkgPath() == reflect.TypeFor[described]().PkgPath() { // in tests, that is not main
		name = "cli." + t.Name()
	}
	if t.Name() == "" {
		return s.fields(t, &schema{Type: []string{"object"}, Properties: map[string]*schema{}})
	}
	if _, made := s.Defs[name]; !made {
		d := &schema{Type: []string{"object"}, Properties: map[string]*schema{}}
		s.Defs[name] = d
		s.fields(t, d)
	}
	return &schema{Ref: defs + name}
}

func (s *schema) fields(t reflect.Type, d *schema) *schema {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.fields(f.Type, d)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		d.Properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			d.Required = append(d.Required, name)
		}
	}
	return d
}
