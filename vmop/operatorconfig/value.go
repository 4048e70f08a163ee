package operatorconfig

import (
	"github.com/vmop/sdk/internal/yamljson"
	"go.yaml.in/yaml/v3"
)

type value struct {
	// component is the path of the component; field the path of the option in it, such as
	// loadBalancerService.labels; key the last key.
	component, field, key string
	line                  int
	node                  *yaml.Node
}

func (v value) plain() bool {
	return v.node.Kind == yaml.ScalarNode && !yamljson.Quoted(v.node) && v.node.Style&yaml.TaggedStyle == 0
}

func (v value) isMapping() bool { return v.node.Kind == yaml.MappingNode }
func (v value) isNull() bool    { return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" }

// truth parses a boolean by YAML 1.1, as VM-Operator does.
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
