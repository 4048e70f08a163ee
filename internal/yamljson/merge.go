package yamljson

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MaxMerged limits how many keys the merge keys of a document may bring in: each of its mappings
// could have all keys of another.
const MaxMerged = 10_000

// Merge puts the keys that the merge keys (<<) of a document bring in into its mappings, in place,
// as parsers of YAML 1.1 do: a mapping's own keys take precedence, and in a list the earlier
// mapping. Merged values become aliases, whose expansion [NodeToJSON] limits. Aliased mappings are
// changed once, at the anchor. The error names the line.
func Merge(doc *yaml.Node) error {
	m := merger{states: map[*yaml.Node]mergeState{}}
	return m.node(doc, 0)
}

type mergeState int

const (
	merging mergeState = iota + 1
	merged
)

type merger struct {
	states map[*yaml.Node]mergeState
	keys   int
}

// node merges within a node. Aliases refer to what the document has elsewhere.
func (m *merger) node(n *yaml.Node, depth int) error {
	if n.Kind == yaml.AliasNode || n.Kind == yaml.ScalarNode || m.states[n] != 0 {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("line %d: the document is nested deeper than %d levels", n.Line, maxDepth)
	}
	m.states[n] = merging
	if n.Kind == yaml.MappingNode {
		if err := m.mapping(n, depth); err != nil {
			return err
		}
	}
	for _, c := range n.Content {
		if err := m.node(c, depth+1); err != nil {
			return err
		}
	}
	m.states[n] = merged
	return nil
}

func isMerge(k *yaml.Node) bool { return k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" }

func scalarKey(k *yaml.Node) (string, bool) {
	k = Target(k)
	return k.Value, k.Kind == yaml.ScalarNode
}

// mapping replaces the merge keys of a mapping.
func (m *merger) mapping(n *yaml.Node, depth int) error {
	var own, sources []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !isMerge(k) {
			own = append(own, k, v)
			continue
		}
		s, err := mergeSources(k, v)
		if err != nil {
			return err
		}
		sources = append(sources, s...)
	}
	if len(sources) == 0 && len(own) == len(n.Content) {
		return nil
	}
	have := map[string]bool{}
	for i := 0; i < len(own); i += 2 {
		if key, ok := scalarKey(own[i]); ok {
			have[key] = true
		}
	}
	for _, s := range sources {
		if m.states[s] == merging {
			return fmt.Errorf("line %d: the key << has a mapping that it is part of", n.Line)
		}
		if err := m.node(s, depth+1); err != nil {
			return err
		}
		for i := 0; i+1 < len(s.Content); i += 2 {
			k, v := s.Content[i], s.Content[i+1]
			key, ok := scalarKey(k)
			if ok && have[key] {
				continue
			}
			if m.keys++; m.keys > MaxMerged {
				return fmt.Errorf("line %d: the keys << of the document bring in more than %d keys; write the values out instead", n.Line, MaxMerged)
			}
			have[key] = true
			own = append(own, aliasOf(k), aliasOf(v))
		}
	}
	n.Content = own
	return nil
}

func mergeSources(k, v *yaml.Node) ([]*yaml.Node, error) {
	v = Target(v)
	sources := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		sources = slices.Clone(v.Content)
	}
	for i, s := range sources {
		if sources[i] = Target(s); sources[i].Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: the key << takes a mapping or a list of mappings", k.Line)
		}
	}
	return sources, nil
}

func aliasOf(n *yaml.Node) *yaml.Node {
	n = Target(n)
	return &yaml.Node{Kind: yaml.AliasNode, Alias: n, Line: n.Line, Column: n.Column}
}
