package operatorconfig

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

type option func(*parser, value)

type parser struct {
	file        string
	known       map[string]bool
	config      Config
	problems    []spec.Problem
	remarks     Remarks
	environment bool
	// nodes counts the visited nodes; full is true after too many.
	nodes int
	full  bool
	noted map[string]bool
	seen  map[string]int
	// Options that override, or are overridden by, another.
	managerNamespace string
	oldValidity      time.Duration
}

// decode returns the content of the only document; nil if there is none.
func (p *parser) decode(data []byte) *yaml.Node {
	doc, err := yamljson.Decode(data)
	if second := (*yamljson.SecondDocumentError)(nil); errors.As(err, &second) {
		p.problems = append(p.problems, spec.Problem{File: p.file, Line: second.Line, Message: "a second document begins here; the configuration is one"})
		return nil
	}
	if err == nil {
		// This finds errors that the tree still hides, such as aliases that contain themselves.
		var whole any
		err = doc.Decode(&whole)
	}
	if err != nil {
		p.syntax(data, err)
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

func (p *parser) syntax(data []byte, err error) {
	var texts []string
	if te := (*yaml.TypeError)(nil); errors.As(err, &te) {
		texts = te.Errors
	} else {
		texts = []string{strings.TrimPrefix(err.Error(), "yaml: ")}
		for i, line := range strings.Split(string(data), "\n") {
			switch {
			case openKey.MatchString(line):
				texts = []string{fmt.Sprintf("line %d: there is no colon behind the key", i+1)}
			case tabbed.MatchString(line):
				texts = []string{fmt.Sprintf("line %d: the line is indented by a tab; YAML takes spaces only", i+1)}
			default:
				continue
			}
			break
		}
	}
	for _, text := range texts {
		problem := spec.Problem{File: p.file}
		if m := lineOf.FindStringSubmatch(text); m != nil {
			problem.Line, _ = strconv.Atoi(m[1])
			text = strings.TrimPrefix(text, m[0])
		}
		problem.Message = "is not valid YAML: " + text
		p.problems = append(p.problems, problem)
	}
}

func (p *parser) problem(v value, format string, args ...any) spec.Problem {
	where := v.component
	switch {
	case v.component == root && v.field != "":
		where = v.field
	case v.field != "":
		where += ": " + v.field
	}
	return spec.Problem{File: p.file, Line: v.line, Path: where, Message: fmt.Sprintf(format, args...)}
}

func (p *parser) fault(v value, format string, args ...any) {
	p.problems = append(p.problems, p.problem(v, format, args...))
}

func (p *parser) warn(v value, format string, args ...any) {
	p.remarks.Warnings = append(p.remarks.Warnings, p.problem(v, format, args...))
}

func (p *parser) note(v value, format string, args ...any) {
	p.remarks.Notes = append(p.remarks.Notes, p.problem(v, "ignored: "+format, args...))
}

// entries returns the entries of a mapping, including those of merge keys.
func (p *parser) entries(v value) []value {
	var out []value
	var collect func(*yaml.Node, bool)
	collect = func(node *yaml.Node, merged bool) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if p.nodes++; p.nodes > maxNodes {
				p.full = true
				return
			}
			key, content := yamljson.Target(node.Content[i]), yamljson.Target(node.Content[i+1])
			if key.ShortTag() == "!!merge" {
				parts := []*yaml.Node{content}
				if content.Kind == yaml.SequenceNode {
					parts = content.Content
				}
				for _, part := range parts {
					collect(yamljson.Target(part), true)
				}
				continue
			}
			e := value{component: v.component, field: v.field, key: key.Value, line: node.Content[i].Line, node: content}
			if key.Kind != yaml.ScalarNode {
				p.fault(e, "a key must be a text")
				continue
			}
			if merged && slices.ContainsFunc(out, func(o value) bool { return o.key == e.key }) {
				continue
			}
			if e.field = e.key; v.field != "" {
				e.field = v.field + "." + e.key
			}
			out = append(out, e)
		}
	}
	collect(v.node, false)
	return out
}

func (p *parser) fields(v value, fields map[string]option) {
	if !v.isMapping() {
		p.fault(v, "found %s, want a mapping with %s", v.kind(), names(fields))
		return
	}
	for _, e := range p.entries(v) {
		switch read, ok := fields[e.key]; {
		case !ok:
			p.warn(e, "unknown option, ignored; here are %s", names(fields))
		case !e.isNull():
			read(p, e)
		}
	}
}

func (p *parser) items(v value) []value {
	if p.environment {
		var out []value
		for _, item := range strings.FieldsFunc(v.node.Value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			out = append(out, value{node: &yaml.Node{Kind: yaml.ScalarNode, Value: item}})
		}
		return out
	}
	if v.node.Kind != yaml.SequenceNode {
		p.fault(v, "found %s, want a list", v.kind())
		return nil
	}
	var out []value
	for i, node := range v.node.Content {
		if p.nodes++; p.nodes > maxNodes {
			p.full = true
			return nil
		}
		out = append(out, value{component: v.component, field: fmt.Sprintf("%s[%d]", v.field, i), line: node.Line, node: yamljson.Target(node)})
	}
	return out
}

// pairs returns the entries of a mapping, or the items KEY=VALUE of a variable.
func (p *parser) pairs(v value) []value {
	if !p.environment {
		if !v.isMapping() {
			p.fault(v, "found %s, want a mapping", v.kind())
			return nil
		}
		return p.entries(v)
	}
	items := p.items(v)
	for i := range items {
		key, text, ok := strings.Cut(items[i].node.Value, "=")
		if !ok {
			p.fault(v, "found %q, want KEY=VALUE", items[i].node.Value)
			return nil
		}
		items[i].key, items[i].node.Value = key, text
	}
	return items
}

func (p *parser) text(v value) (string, bool) {
	switch {
	case p.environment:
		return v.node.Value, true
	case v.node.Kind != yaml.ScalarNode || v.isNull():
		p.fault(v, "found %s, want a text", v.kind())
	case v.isBool() || v.isNumber():
		p.fault(v, "found %s, want a text; put it in quotes", v.kind())
	default:
		return v.node.Value, true
	}
	return "", false
}

func (p *parser) truth(v value) (bool, bool) {
	b, is := v.truth()
	if !is {
		p.fault(v, "found %s, want true or false", v.kind())
	}
	return b, is
}

func (p *parser) flag(v value, to *bool) {
	if b, ok := p.truth(v); ok {
		*to = b
	}
}

// patterns reads a list of texts in which an asterisk matches any text.
func (p *parser) patterns(v value, to *[]string) {
	list := []string{}
	for _, item := range p.items(v) {
		if s, ok := p.text(item); ok && p.valid(item, s, "a text such as registry.example.org/* without spaces", isImage(s)) {
			list = append(list, s)
		}
	}
	*to = list
}

func (p *parser) ports(v value, to *objects.PortRange) {
	first, last, two := strings.Cut(v.node.Value, "-")
	if !two {
		last = first
	}
	from, err := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	until, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if v.node.Kind != yaml.ScalarNode || err != nil || err2 != nil || from < 1 || from > until {
		p.fault(v, "found %s, want a range of ports such as 5910-5999", shown(v))
		return
	}
	*to = objects.PortRange{First: int32(from), Last: int32(until)}
}

func (p *parser) whole(v value, least, most int) (int, bool) {
	n, err := strconv.Atoi(v.node.Value)
	if v.node.Kind != yaml.ScalarNode || !v.isNumber() || err != nil || n < least || n > most {
		p.fault(v, "found %s, want a whole number from %d to %d", v.kind(), least, most)
		return 0, false
	}
	return n, true
}

// number reads a number, or a text that is one, as VM-Operator does.
func (p *parser) number(v value) (float64, bool) {
	if v.node.Kind != yaml.ScalarNode || v.isBool() {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v.node.Value), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// factor reads a divisor of a machine's CPUs or memory.
func (p *parser) factor(v value, to *float64) {
	f, ok := p.number(v)
	if !ok || f <= 0 {
		p.fault(v, "found %s, want a number above 0 such as 1.25", shown(v))
		return
	}
	*to = f
}

func (p *parser) seconds(v value, to *time.Duration) {
	const most = 86400
	f, ok := p.number(v)
	if !ok || f < 1 || f > most || f != math.Trunc(f) {
		p.fault(v, "found %s, want a whole number of seconds from 1 to %d", shown(v), most)
		return
	}
	*to = time.Duration(f) * time.Second
}

func shown(v value) string {
	if k := v.kind(); k != "a text" {
		return k
	}
	return strconv.Quote(v.node.Value)
}

func (p *parser) valid(v value, s, want string, ok bool) bool {
	if !ok {
		p.fault(v, "found %q, want %s", s, want)
	}
	return ok
}

func (p *parser) namespace(v value) (string, bool) {
	s, ok := p.text(v)
	return s, ok && p.valid(v, s, "the name of a namespace: small letters, digits and dashes, at most 63", len(validation.IsDNS1123Label(s)) == 0)
}

func (p *parser) namespaces(v value, to *[]string) {
	for _, item := range p.items(v) {
		if s, ok := p.namespace(item); ok && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
}

// isImage reports whether a text can be the name of an image. Registries differ in what they
// accept; this refuses what none does.
func isImage(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isNodeResource(s string) bool {
	return strings.Contains(s, "/") && len(validation.IsQualifiedName(s)) == 0
}

// names lists the keys of a map for a message, except runnerData, which exists only for a warning.
func names[V any](m map[string]V) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return k == "runnerData" })
	return strings.Join(keys, ", ")
}

// maxNodes bounds the nodes visited: with aliases, a file can be much longer than it looks.
const maxNodes = 100_000

var (
	lineOf = regexp.MustCompile(`^line ([0-9]+): `)
	// openKey is a component without its colon, as in one of VM-Operator's examples. The library
	// reports another error, for another line.
	openKey = regexp.MustCompile(`^\s*["']?[/_][^:#]*$`)
	tabbed  = regexp.MustCompile(`^ *\t`)
)

const root = "/"
