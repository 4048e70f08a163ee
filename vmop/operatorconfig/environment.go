package operatorconfig

import (
	"slices"
	"strings"
	"unicode"

	"github.com/vmop/sdk/vmop/spec"
	"go.yaml.in/yaml/v3"
)

const (
	// variablePrefix begins the names of environment variables that are options.
	variablePrefix = "VMOP_"
	// testPrefix begins those of the tests, which mean nothing here.
	testPrefix = variablePrefix + "TEST_"
)

// ParseEnvironment overlays a configuration with the environment variables that
// are options, in the form of os.Environ: those of "/Operator" and the factors of
// the requests have one, as in VMOP_RUNNER_IMAGE for runnerImage. The items of a
// list are separated by commas or spaces. An empty variable says nothing.
//
// If the error, which is an [*Error], is not nil, there is no configuration.
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

// Option is where an option stands in the configuration file.
type Option struct{ Component, Name string }

// Variables are the environment variables of [ParseEnvironment], and the options
// that they are.
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

// variable is the environment variable of an option.
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
