package operatorconfig

import (
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

func (v value) plain() bool {
	return v.node.Kind == yaml.ScalarNode && !yamljson.Quoted(v.node) && v.node.Style&yaml.TaggedStyle == 0
}

func (v value) isMapping() bool { return v.node.Kind == yaml.MappingNode }
func (v value) isNull() bool    { return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" }

// truth is what VM-Operator reads by YAML 1.1.
func (v value) truth() (value, is bool) {
	if !v.plain() {
		return false, false
	}
	return yamljson.TruthOfSnakeYAML(v.node.Value)
}

func (v value) isBool() bool { _, is := v.truth(); return is }

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
