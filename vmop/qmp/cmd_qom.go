package qmp

import "encoding/json"

// QOMGet reads a property of an object. The result is any JSON value.
type QOMGet struct {
	Path     string `json:"path"` // such as "/machine/peripheral/ID"
	Property string `json:"property"`
}

// QMP implements Command.
func (QOMGet) QMP() (string, json.RawMessage) { return "qom-get", nil }

// QOMSet writes a property of an object.
type QOMSet struct {
	Path     string `json:"path"`
	Property string `json:"property"`
	Value    any    `json:"value"`
}

// QMP implements Command.
func (QOMSet) QMP() (string, None) { return "qom-set", None{} }

// QOMList queries the properties of an object, including its children.
type QOMList struct {
	Path string `json:"path"`
}

// QMP implements Command.
func (QOMList) QMP() (string, []ObjectProperty) { return "qom-list", nil }

// ObjectProperty describes a property of an object or of a device type.
type ObjectProperty struct {
	Name         string          `json:"name"`
	Type         string          `json:"type"` // such as "bool", "child<...>" and "link<...>"
	Description  string          `json:"description"`
	DefaultValue json.RawMessage `json:"default-value"` // nil if it has none
}

// QOMListTypes queries the types of objects that this QEMU has.
type QOMListTypes struct {
	Implements string `json:"implements,omitempty"` // only those that derive from this type
	Abstract   bool   `json:"abstract,omitempty"`   // also those that cannot be instantiated
}

// QMP implements Command.
func (QOMListTypes) QMP() (string, []ObjectType) { return "qom-list-types", nil }

// ObjectType is a type of objects.
type ObjectType struct {
	Name     string `json:"name"`
	Abstract bool   `json:"abstract"`
	Parent   string `json:"parent"`
}
