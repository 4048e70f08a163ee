package operatorconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
)

// Parse reads a configuration file. The name is for messages. A non-nil error is an [*Error]; then
// there is no configuration.
func Parse(name string, data []byte) (Config, Remarks, error) {
	return ParseOver(Config{}, name, data)
}

// ParseOver reads a configuration file whose options override those of base, as the operator's own
// file overrides VM-Operator's. A list or mapping is replaced as a whole. The base is not changed.
func ParseOver(base Config, name string, data []byte) (Config, Remarks, error) {
	p := &parser{file: name, known: known(), seen: map[string]int{}, noted: map[string]bool{}, config: base}
	p.config.Namespaces, p.config.Console.PasswordValidity = nil, 0
	if node := p.decode(data); node != nil {
		p.component(root, value{component: root, line: node.Line, node: node})
	}
	p.finish()
	byLine := func(a, b spec.Problem) int { return cmp.Compare(a.Line, b.Line) }
	slices.SortStableFunc(p.problems, byLine)
	slices.SortStableFunc(p.remarks.Warnings, byLine)
	slices.SortStableFunc(p.remarks.Notes, byLine)
	if len(p.problems) > 0 {
		return Config{}, p.remarks, &Error{Problems: p.problems, Remarks: p.remarks}
	}
	if p.config.Namespaces == nil {
		p.config.Namespaces = slices.Clone(base.Namespaces)
	}
	if p.config.Console.PasswordValidity == 0 {
		p.config.Console.PasswordValidity = base.Console.PasswordValidity
	}
	return p.config, p.remarks, nil
}

func (p *parser) component(path string, v value) {
	switch {
	case v.isNull():
		return
	case !v.isMapping():
		p.fault(v, "found %s, want a mapping", v.kind())
		return
	}
	for _, e := range p.entries(v) {
		if p.full {
			return
		}
		if e.key != "" && (e.key[0] == '/' || e.key[0] == '_') {
			p.below(path, e)
			continue
		}
		p.option(path, e)
	}
}

func (p *parser) below(path string, e value) {
	for part := range strings.SplitSeq(e.key[1:], "/") {
		if part != "" {
			path = strings.TrimSuffix(path, "/") + "/" + part
		}
	}
	e.component, e.field = path, ""
	if tree := webInterface(path); tree != "" && !p.noted[tree] {
		p.noted[tree] = true
		p.note(e, "it is for VM-Operator's web interface, which is not part of this operator")
	}
	switch {
	case p.known[path]:
		p.component(path, e)
	case webInterface(path) == "":
		p.warn(e, "unknown component, ignored; there are %s", names(p.components()))
	}
}

func (p *parser) components() map[string]map[string]option {
	out := map[string]map[string]option{}
	for path, o := range options {
		if webInterface(path) == "" && path != oldSecrets {
			out[path] = o
		}
	}
	return out
}

func (p *parser) option(path string, e value) {
	read, ok := options[path][e.key]
	switch {
	case !ok && webInterface(path) != "":
		return // there is a note already
	case !ok && len(options[path]) > 0:
		p.warn(e, "unknown option, ignored; %s has %s", path, names(options[path]))
		return
	case !ok && p.known[strings.TrimSuffix(path, "/")+"/"+e.key]:
		p.warn(e, "unknown option, ignored; a component begins with a slash: %q", "/"+e.key)
		return
	case !ok:
		p.warn(e, "unknown option, ignored; %s has none", path)
		return
	}
	name := path + ": " + e.key
	if line, twice := p.seen[name]; twice {
		p.fault(e, "is given a second time; it stands already in line %d", line)
		return
	}
	p.seen[name] = e.line
	if !e.isNull() {
		read(p, e)
	}
}

func (p *parser) finish() {
	if p.full {
		p.problems = append(p.problems, spec.Problem{File: p.file, Message: fmt.Sprintf("the configuration has more than %d entries, with its aliases", maxNodes)})
	}
	at := func(path, key string) value {
		return value{component: path, field: key, line: p.seen[path+": "+key]}
	}
	switch {
	case p.managerNamespace == "":
	case len(p.config.Namespaces) > 0:
		p.warn(at(controller, "namespace"), "ignored, because %s has namespaces", operator)
	default:
		p.config.Namespaces = []string{p.managerNamespace}
	}
	switch {
	case p.oldValidity == 0:
	case p.config.Console.PasswordValidity != 0:
		p.warn(at(oldSecrets, "passwordValidity"), "ignored, because %s has it too", secrets)
	default:
		p.config.Console.PasswordValidity = p.oldValidity
	}
	if s := p.config.Settings; s.Privileged && s.KVMResource != "" {
		p.warn(at(operator, "privileged"), "has no effect beside kvmResource")
	}
}
