package spec

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vmop/sdk/internal/yamljson"
	"go.yaml.in/yaml/v3"
)

// scalar converts a YAML scalar to a node. Plain scalars are read by YAML 1.1, as kubectl does:
// yes, on and y are booleans, 0755 is octal. The parser in use would read them by YAML 1.2, so that
// a file would have another meaning here than in the cluster.
func scalar(y *yaml.Node) (*node, error) {
	n := &node{line: y.Line, source: y.Value}
	tag := ""
	if y.Style&yaml.TaggedStyle != 0 {
		tag = y.ShortTag()
	}
	switch tag {
	case "":
		if yamljson.Quoted(y) {
			n.kind, n.text = stringNode, y.Value
			return n, nil
		}
		n.kind, n.text = resolvePlain(y.Value)
	case "!", "!!str":
		n.kind, n.text = stringNode, y.Value
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(y.Value), ""))
		if err != nil {
			return nil, fmt.Errorf("is tagged !!binary but is not base64: %w", err)
		}
		if !utf8.Valid(data) {
			return nil, fmt.Errorf("is binary data, which has no form in JSON; give the base64 text without the tag !!binary")
		}
		n.kind, n.text = stringNode, string(data)
	case "!!bool", "!!int", "!!float", "!!null":
		n.kind, n.text = resolvePlain(y.Value)
		want := map[string]nodeKind{"!!bool": boolNode, "!!int": numberNode, "!!float": numberNode, "!!null": nullNode}[tag]
		if n.kind != want || tag == "!!int" && !isInteger(n.text) {
			return nil, fmt.Errorf("%q cannot be read as %s", y.Value, tag)
		}
	case "!!timestamp":
		if !isTimestamp(y.Value) {
			return nil, fmt.Errorf("%q cannot be read as %s", y.Value, tag)
		}
		n.kind, n.text = stringNode, y.Value
	default:
		return nil, fmt.Errorf("has the tag %s, which means nothing here; remove it", tag)
	}
	if n.kind == numberNode && n.text == "" {
		return nil, fmt.Errorf("%s has no form in JSON; put it in quotes if it is a text", y.Value)
	}
	return n, nil
}

// resolvePlain returns the kind and the JSON form of a plain scalar of YAML 1.1. Numbers keep their
// form wherever it is valid JSON; those without a JSON form (.nan, .inf) have an empty text.
func resolvePlain(s string) (nodeKind, string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nullNode, "null"
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return numberNode, ""
	}
	if value, is := yamljson.Truth(s); is {
		return boolNode, strconv.FormatBool(value)
	}
	switch c := s[0]; {
	case c == '.':
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return numberNode, jsonFloat(f)
		}
		return stringNode, s
	case c != '+' && c != '-' && (c < '0' || c > '9'):
		return stringNode, s
	case isTimestamp(s):
		return stringNode, s
	}
	return resolveNumber(s)
}

func resolveNumber(s string) (nodeKind, string) {
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return numberNode, strconv.FormatInt(i, 10)
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return numberNode, strconv.FormatUint(u, 10)
	}
	if yamlFloatPattern().MatchString(plain) {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			if jsonNumberPattern().MatchString(plain) {
				return numberNode, plain
			}
			return numberNode, jsonFloat(f)
		}
	}
	return stringNode, s
}

// isTimestamp reports whether YAML 1.1 reads a plain scalar as a time, which remains a string in
// JSON.
func isTimestamp(s string) bool {
	if len(s) < 5 || s[4] != '-' {
		return false
	}
	for _, layout := range []string{
		"2006-1-2T15:4:5.999999999Z07:00", "2006-1-2t15:4:5.999999999Z07:00",
		"2006-1-2 15:4:5.999999999", "2006-1-2",
	} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

func isInteger(s string) bool {
	return s != "" && strings.Trim(s, "-0123456789") == ""
}

func jsonFloat(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return ""
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func keyText(n *node) (string, error) {
	switch n.kind {
	case stringNode, boolNode:
		return n.text, nil
	case numberNode:
		if isInteger(n.text) {
			return n.text, nil
		}
		f, err := strconv.ParseFloat(n.text, 64)
		if err != nil {
			return "", fmt.Errorf("the key %s is not a usable number; put it in quotes", n.source)
		}
		return strconv.FormatFloat(f, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("the key is empty or null; put it in quotes if it is a text")
}
