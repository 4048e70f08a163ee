package qmp

import (
	"encoding/json"
	"maps"
	"slices"
)

// Schema describes what this QEMU supports: the result of query-qmp-schema, as specified by
// qapi/introspect.json. Use it before a feature that not every version has.
type Schema struct {
	entities map[string]*SchemaEntity
}

// SchemaEntity is one command, event or type. Which fields are set depends on MetaType.
type SchemaEntity struct {
	Name     string `json:"name"`      // names of types mean nothing and change between builds
	MetaType string `json:"meta-type"` // "command", "event", "object", "enum", "array", "alternate" or "builtin"

	ArgType  string `json:"arg-type"`  // command, event: type of the arguments or data
	RetType  string `json:"ret-type"`  // command: type of the result
	AllowOOB bool   `json:"allow-oob"` // command: may run out of band

	JSONType    string   `json:"json-type"`    // builtin: "string", "int", "number", "boolean", "object", "array", "null" or "value"
	ElementType string   `json:"element-type"` // array
	Values      []string `json:"values"`       // enum

	Members  []SchemaMember  `json:"members"`  // object, alternate; enum since QEMU 6.2
	Tag      string          `json:"tag"`      // object: name of the member that selects the variant
	Variants []SchemaVariant `json:"variants"` // object

	Features []string `json:"features"` // such as "deprecated" and "unstable"
}

// SchemaMember is a member of an object, of an alternate (without a name) or of an enumeration
// (without a type).
type SchemaMember struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Optional bool     `json:"-"`
	Features []string `json:"features"`
}

// UnmarshalJSON takes the presence of "default", whatever its value, to mean that the member is
// optional.
func (m *SchemaMember) UnmarshalJSON(b []byte) error {
	type plain SchemaMember
	var wire struct {
		plain
		Default json.RawMessage `json:"default"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*m = SchemaMember(wire.plain)
	m.Optional = wire.Default != nil
	return nil
}

// SchemaVariant names the type whose members an object additionally has when its tag has the value
// Case.
type SchemaVariant struct {
	Case string `json:"case"`
	Type string `json:"type"`
}

func newSchema(entities []SchemaEntity) *Schema {
	s := &Schema{entities: make(map[string]*SchemaEntity, len(entities))}
	for _, e := range slices.Clone(entities) {
		s.entities[e.Name] = &e
	}
	return s
}

// Entity returns the command, event or type of that name, or nil.
func (s *Schema) Entity(name string) *SchemaEntity { return s.entities[name] }

// Commands returns the names of all commands, sorted.
func (s *Schema) Commands() []string { return s.named("command") }

// Events returns the names of all events, sorted.
func (s *Schema) Events() []string { return s.named("event") }

func (s *Schema) named(metaType string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.entities)) {
		if s.entities[name].MetaType == metaType {
			names = append(names, name)
		}
	}
	return names
}

// HasCommand reports whether the command exists.
func (s *Schema) HasCommand(name string) bool {
	e := s.entities[name]
	return e != nil && e.MetaType == "command"
}

// HasEvent reports whether the event exists.
func (s *Schema) HasEvent(name string) bool {
	e := s.entities[name]
	return e != nil && e.MetaType == "event"
}

// Accepts reports whether the arguments of the command, or the data of the event, may have the
// member at path. Path elements are member names; arrays, alternates and all variants of an object
// are searched at each. The last element may be a value of an enumeration. For example
//
//	s.Accepts("blockdev-add", "driver", "nvme-io_uring")
//	s.Accepts("screendump", "format", "png")
func (s *Schema) Accepts(name string, path ...string) bool {
	e := s.entities[name]
	return e != nil && e.ArgType != "" && s.leads(e.ArgType, path)
}

// Returns reports whether the result of the command may have the member at path, as Accepts does
// for its arguments.
func (s *Schema) Returns(name string, path ...string) bool {
	e := s.entities[name]
	return e != nil && e.RetType != "" && s.leads(e.RetType, path)
}

func (s *Schema) leads(typeName string, path []string) bool {
	if len(path) == 0 {
		return true
	}
	e := s.entities[typeName]
	if e == nil {
		return false
	}
	switch e.MetaType {
	case "array":
		return s.leads(e.ElementType, path)
	case "alternate":
		return slices.ContainsFunc(e.Members, func(m SchemaMember) bool { return s.leads(m.Type, path) })
	case "enum":
		return len(path) == 1 && (slices.Contains(e.Values, path[0]) ||
			slices.ContainsFunc(e.Members, func(m SchemaMember) bool { return m.Name == path[0] }))
	case "object":
		return slices.ContainsFunc(e.Members, func(m SchemaMember) bool { return m.Name == path[0] && s.leads(m.Type, path[1:]) }) ||
			slices.ContainsFunc(e.Variants, func(v SchemaVariant) bool { return s.leads(v.Type, path) })
	default:
		return false
	}
}
