package qemucmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/vmop/sdk/internal/plainjson"
	"github.com/vmop/sdk/vmop/limits"
)

// IsStandardTemplate reports whether a template's name stands for the built-in
// machine of [Build]; see [limits.IsStandardTemplate].
func IsStandardTemplate(name string) bool { return limits.IsStandardTemplate(name) }

// CheckTemplateName refuses FreeMarker templates other than the standard ones, which cannot be
// executed here. The error describes how to write the same as a Go template.
func CheckTemplateName(name string) error {
	if err := limits.TemplateName(name); err != nil {
		return &Error{Field: "template", Message: fmt.Sprintf("%q %v", name, err)}
	}
	return nil
}

// TemplateData is the data of a custom machine type's template.
type TemplateData struct {
	Machine Machine
	Host    Host
}

// BuildTemplate returns the command line that a Go text/template renders for a machine, for example
// the standard one with two more lines. The template is executed with a [TemplateData] and these
// functions:
//
//	standard          all arguments of the standard machine
//	group NAME        the arguments of one group (see GroupNames), which is
//	                  nothing if the machine does not need the group
//	without NAME...   all arguments but those of the named groups
//	opt STRING        a text as part of a key=value list: commas are doubled
//	json VALUE        a value as JSON; of a text it makes the quoted form below
//
// Its output is one argument per line. White space around a line is removed; empty lines and lines
// that start with "#" are ignored. A line that starts with a double quote is a JSON string, which
// can hold any argument.
//
//	{{without "sound"}}
//	# a second serial port that writes to a file
//	-chardev
//	file,id=log,path={{opt (printf "/tmp/%s.log" .Machine.Name)}}
//	-device
//	isa-serial,chardev=log,index=1
//
// QEMU creates devices given as JSON after all others, wherever they stand. If a template writes a
// -device as key=value text, the standard devices are therefore rendered as text too; otherwise its
// devices would take their PCI addresses. Options that bring a device of their own, such as -virtfs
// and -drive with if=virtio, take the first free slot and collide with the balloon: write -fsdev or
// -blockdev, and a -device.
//
// The result must still have -S and the group "monitor", without which the machine could not be
// controlled. Files, sockets and helpers are those of the groups that are used, and those whose
// path occurs in an argument.
func BuildTemplate(m Machine, h Host, source string) (Command, error) {
	if err := limits.TemplateText(source); err != nil {
		return Command{}, &Error{Field: "template", Message: err.Error()}
	}
	b, err := build(m, h)
	if err != nil {
		return Command{}, err
	}
	t := templating{b: b, used: map[string]bool{}}
	args, err := t.execute(source)
	if err == nil && slices.ContainsFunc(devices(args), isText) && t.devicesAsText() {
		args, err = t.execute(source)
	}
	if err != nil {
		return Command{}, err
	}
	if err := t.checkRequired(args); err != nil {
		return Command{}, err
	}
	cmd := b.command()
	cmd.Groups = []Group{{Name: "template", Options: verbatim(args)}}
	cmd.Files = items(b.files, func(f owned[File]) bool { return t.keeps(f.group, args, f.item.Path) })
	cmd.Sockets = items(b.sockets, func(s owned[NamedSocket]) bool { return t.keeps(s.group, args, s.item.Path) })
	cmd.Helpers = items(b.helpers, func(x owned[Helper]) bool { return t.keeps(x.group, args, x.item.Socket) })
	return cmd, nil
}

// Template is [BuildTemplate] of one template, as a function value.
func Template(source string) func(Machine, Host) (Command, error) {
	return func(m Machine, h Host) (Command, error) { return BuildTemplate(m, h, source) }
}

type templating struct {
	b    *builder
	used map[string]bool // groups whose arguments the template took
}

func (t *templating) execute(source string) ([]string, error) {
	var count steps
	var made texts
	tmpl, err := template.New("template").Option("missingkey=error").Funcs(made.functions()).Funcs(template.FuncMap{
		"standard":   func() (string, error) { return t.without() },
		"group":      t.group,
		"without":    t.without,
		"opt":        opt,
		"json":       jsonText,
		stepFunction: count.step,
	}).Parse(source)
	if err != nil {
		return nil, &Error{Field: "template", Message: cause(err)}
	}
	countSteps(tmpl)
	var out bounded
	if err := tmpl.Execute(&out, TemplateData{t.b.m, t.b.h}); err != nil {
		return nil, &Error{Field: "template", Message: cause(err)}
	}
	return parseLines(out.String())
}

func devices(args []string) []string {
	var out []string
	for i, arg := range args {
		if (arg == "-device" || arg == "--device") && i+1 < len(args) {
			out = append(out, args[i+1])
		}
	}
	return out
}

func isText(device string) bool { return !strings.HasPrefix(device, "{") }

func (t *templating) devicesAsText() bool {
	changed := false
	for _, g := range t.b.groups {
		for i := range g.Options {
			if o := &g.Options[i]; o.Flag == "-device" && o.JSON {
				o.JSON, changed = false, true
			}
		}
	}
	return changed
}

// cause is the message of an error of text/template without that package's prefix. It starts with
// the position: "template:3:5: …" is line 3.
func cause(err error) string { return strings.TrimPrefix(err.Error(), "template: ") }

type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplateOutput {
		return 0, fmt.Errorf("the output has more than %d bytes", maxTemplateOutput)
	}
	return b.Buffer.Write(p)
}

func (t *templating) group(name string) (string, error) {
	if err := knownGroup(name); err != nil {
		return "", err
	}
	t.used[name] = true
	var lines strings.Builder
	for _, g := range t.b.groups {
		if g.Name == name {
			appendLines(&lines, g.Options)
		}
	}
	return lines.String(), nil
}

func (t *templating) without(names ...string) (string, error) {
	for _, name := range names {
		if err := knownGroup(name); err != nil {
			return "", err
		}
	}
	// A group may have files and no arguments.
	for _, name := range GroupNames() {
		if !slices.Contains(names, name) {
			t.used[name] = true
		}
	}
	var lines strings.Builder
	for _, g := range t.b.groups {
		if !slices.Contains(names, g.Name) {
			appendLines(&lines, g.Options)
		}
	}
	return lines.String(), nil
}

func knownGroup(name string) error {
	if names := GroupNames(); !slices.Contains(names, name) {
		return fmt.Errorf("there is no group %q; the groups are %s", name, strings.Join(names, ", "))
	}
	return nil
}

// opt doubles commas. It refuses control characters, which would end the line.
func opt(s string) (string, error) {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("opt: %q contains a control character; write the whole argument as a JSON string", s)
	}
	return string(appendEscaped(nil, s)), nil
}

func jsonText(v any) (string, error) {
	text, err := plainjson.Marshal(v)
	return string(text), err
}

func appendLines(out *strings.Builder, options []Option) {
	for _, o := range options {
		for _, arg := range o.Args() {
			if plainLine(arg) {
				out.WriteString(arg)
			} else {
				out.Write(appendJSONString(nil, arg))
			}
			out.WriteByte('\n')
		}
	}
}

// plainLine reports whether parseLines reads the line s as s.
func plainLine(s string) bool {
	return s != "" && s[0] != '"' && s[0] != '#' && strings.Trim(s, lineSpace) == s && !strings.ContainsAny(s, "\n\r")
}

const lineSpace = " \t\r\n"

func parseLines(out string) ([]string, error) {
	var args []string
	var errs []error
	n := 0
	for line := range strings.Lines(out) {
		n++
		line = strings.Trim(line, lineSpace)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '"':
			var arg string
			if err := json.Unmarshal([]byte(line), &arg); err != nil {
				errs = append(errs, &Error{Field: "template", Message: fmt.Sprintf("line %d of the output, %s, is no JSON string: %v", n, line, err)})
				continue
			}
			args = append(args, arg)
		default:
			args = append(args, line)
		}
	}
	for _, arg := range args {
		switch {
		case strings.ContainsRune(arg, 0):
			errs = append(errs, &Error{Field: "template", Message: fmt.Sprintf("the argument %q contains a zero byte", arg)})
		case len(arg) > limits.MaxArgument:
			errs = append(errs, &Error{Field: "template", Message: fmt.Sprintf("an argument has %d bytes, and Linux allows %d", len(arg), limits.MaxArgument)})
		}
	}
	return args, errors.Join(errs...)
}

func (t *templating) checkRequired(args []string) error {
	var errs []error
	if !slices.Contains(args, "-S") {
		errs = append(errs, &Error{Field: "template", Message: `the result lacks -S: use {{group "start"}}`})
	}
	for _, g := range t.b.groups {
		if g.Name != "monitor" {
			continue
		}
		for _, o := range g.Options {
			if want := o.Args(); !contains(args, want) {
				errs = append(errs, &Error{Field: "template", Message: fmt.Sprintf(`the result lacks %s: use {{group "monitor"}}`, strings.Join(want, " "))})
			}
		}
	}
	return errors.Join(errs...)
}

func contains(args, want []string) bool {
	for i := range len(args) - len(want) + 1 {
		if slices.Equal(args[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// keeps reports whether a file, socket or helper of a group is still needed: the template used the
// group, or wrote the path itself, in one of the forms that a path can have in an argument.
func (t *templating) keeps(group string, args []string, p string) bool {
	if t.used[group] {
		return true
	}
	if p == "" {
		return false
	}
	quoted := appendJSONString(nil, p)
	forms := []string{p, string(appendEscaped(nil, p)), string(quoted[1 : len(quoted)-1])}
	return slices.ContainsFunc(args, func(arg string) bool {
		return slices.ContainsFunc(forms, func(f string) bool { return strings.Contains(arg, f) })
	})
}

// verbatim turns arguments into options, one per flag. The grouping only matters for
// [Command.Shell].
func verbatim(args []string) []Option {
	var options []Option
	for _, arg := range args {
		if n := len(options); n == 0 || strings.HasPrefix(arg, "-") {
			options = append(options, Option{Verbatim: []string{arg}})
		} else {
			options[n-1].Verbatim = append(options[n-1].Verbatim, arg)
		}
	}
	return options
}
