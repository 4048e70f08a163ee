package operatorconfig

import (
	"slices"
	"strings"
	"unicode"

	"github.com/vmop/sdk/vmop/spec"
	"go.yaml.in/yaml/v3"
)

const (
	variablePrefix = "VMOP_"
	// testPrefix is the prefix of the tests' variables, which are ignored here.
	testPrefix = variablePrefix + "TEST_"
)

// ParseEnvironment overlays a configuration with the environment variables that are options, in the
// form of os.Environ, as in VMOP_RUNNER_IMAGE for runnerImage. The options of "/Operator" and the
// overcommit factors have a variable. The items of a list are separated by commas or spaces. An
// empty variable is ignored.
//
// A non-nil error is an [*Error]; then there is no configuration.
func ParseEnvironment(config Config, environ []string) (Config, Remarks, error) {
	p := &parser{config: config, environment: true, seen: map[string]int{}, noted: map[string]bool{}}
	known := Variables()
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, testPrefix) {
			continue
		}
		p.file = name
		o, ok := known[name]
		v := value{node: &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)}}
		switch {
		case !ok:
			p.remarks.Warnings = append(p.remarks.Warnings, spec.Problem{File: name, Message: "unknown environment variable, ignored; there are " + names(known)})
		case v.node.Value != "":
			switch o.Name {
			case "namespaces":
				p.config.Namespaces = nil
			case "excludeNamespaces":
				p.config.ExcludeNamespaces = nil
			}
			options[o.Component][o.Name](p, v)
		}
	}
	if len(p.problems) > 0 {
		return Config{}, p.remarks, &Error{Problems: p.problems, Remarks: p.remarks}
	}
	return p.config, p.remarks, nil
}

// Option is the place of an option in the configuration file.
type Option struct{ Component, Name string }

// Variables maps the environment variables of [ParseEnvironment] to their options.
func Variables() map[string]Option {
	out := map[string]Option{}
	for name := range options[operator] {
		out[variable(name)] = Option{operator, name}
	}
	for _, name := range []string{"cpuOvercommit", "ramOvercommit"} {
		out[variable(name)] = Option{reconciler, name}
	}
	return out
}

func variable(option string) string {
	var b strings.Builder
	b.WriteString(variablePrefix)
	for i, r := range option {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(option[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
