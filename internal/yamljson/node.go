package yamljson

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// SecondDocumentError is a document behind the one that is expected.
type SecondDocumentError struct{ Line int }

func (e *SecondDocumentError) Error() string {
	return fmt.Sprintf("line %d: a second document where one is expected", e.Line)
}

// Decode reads one YAML document. An empty one is null, and a second one a
// [SecondDocumentError].
func Decode(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	} else if err != nil {
		return nil, err
	}
	// The parser looks at what follows a document only when asked for the next.
	if err := dec.Decode(&second); err == nil {
		return nil, &SecondDocumentError{Line: second.Line}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &doc, nil
}

// Quoted reports whether a scalar stands in quotes or in a block, and so is a text whatever
// it looks like.
func Quoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// Target is the node that an alias stands for, and any other node itself.
func Target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
