package yamljson

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// SecondDocumentError reports an unexpected second document.
type SecondDocumentError struct{ Line int }

func (e *SecondDocumentError) Error() string {
	return fmt.Sprintf("line %d: a second document where one is expected", e.Line)
}

// Decode reads one YAML document. An empty one is null, and a second one a [SecondDocumentError].
func Decode(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	} else if err != nil {
		return nil, err
	}
	// The parser reads what follows a document only when asked for the next.
	if err := dec.Decode(&second); err == nil {
		return nil, &SecondDocumentError{Line: second.Line}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &doc, nil
}

// Quoted reports whether a scalar is in quotes or in a block, and thus a string whatever its
// content.
func Quoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// Target returns the node that an alias refers to, and any other node itself.
func Target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
