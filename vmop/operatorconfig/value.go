package operatorconfig

import (
	"slices"

	"github.com/vmop/sdk/internal/yamljson"
	"go.yaml.in/yaml/v3"
)

// value is a part of the file: where it stands, and what is there.
type value struct {
	// component is the path of the component; field the option in it and what
	// is below, such as loadBalancerService.labels; key the last key of it.
	component, field, key string
	// line is that of the key.
	line int
	node *yaml.Node
}

// truths are YAML 1.1's, which VM-Operator reads by.
var truths = map[bool][]string{
	true:  {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"},
	false: {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"},
}

func (v value) plain() bool {
	return v.node.Kind == yaml.ScalarNode && !yamljson.Quoted(v.node) && v.node.Style&yaml.TaggedStyle == 0
}

func (v value) isMapping() bool { return v.node.Kind == yaml.MappingNode }
func (v value) isNull() bool    { return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" }
func (v value) isBool() bool {
	return v.plain() && (slices.Contains(truths[true], v.node.Value) || slices.Contains(truths[false], v.node.Value))
}

func (v value) isNumber() bool {
	return v.node.Kind == yaml.ScalarNode && (v.node.ShortTag() == "!!int" || v.node.ShortTag() == "!!float")
}

// kind is what people call what is there.
func (v value) kind() string {
	switch {
	case v.isMapping():
		return "a mapping"
	case v.node.Kind == yaml.SequenceNode:
		return "a list"
	case v.isNull():
		return "nothing"
	case v.isBool():
		return "the boolean " + v.node.Value
	case v.isNumber():
		return "the number " + v.node.Value
	}
	return "a text"
}
