package rendering

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Part is a part of the result of rendering a manifest.
type Part string

// The parts. [All] stands for all of them, with the assumptions made.
const (
	QEMU      Part = "qemu"
	Config    Part = "config"
	Objects   Part = "objects"
	CloudInit Part = "cloud-init"
	All       Part = "all"
)

// parts are those that can be rendered alone, in order.
var parts = []Part{QEMU, Config, Objects, CloudInit}

// Format is how a part is written.
type Format string

// The formats. The first two are for QEMU's command line: for a shell, and one argument per line.
const (
	Shell Format = "shell"
	Argv  Format = "argv"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// HasCommand reports whether a part contains a command line: the others only have [JSON] and
// [YAML].
func (p Part) HasCommand() bool { return p == QEMU || p == All }

// format is the default format of a part.
func (p Part) format() Format {
	if p.HasCommand() {
		return Shell
	}
	return YAML
}

func check(part Part, format Format) error {
	switch {
	case part != All && !slices.Contains(parts, part):
		return fmt.Errorf("rendering: there is no part %q: want qemu, config, objects, cloud-init or all", part)
	case !slices.Contains([]Format{Shell, Argv, JSON, YAML}, format):
		return fmt.Errorf("rendering: there is no format %q: want shell, argv, json or yaml", format)
	case !part.HasCommand() && (format == Shell || format == Argv):
		return fmt.Errorf("rendering: the format %s is for QEMU's command line: %s has json and yaml", format, part)
	}
	return nil
}

// Machine is the result of vmop.Render for a machine.
type Machine struct {
	// Namespace and Name are the manifest's; an empty namespace is "default".
	Namespace, Name string
	vmop.Rendered
}

func (m *Machine) namespace() string { return cmp.Or(m.Namespace, metav1.NamespaceDefault) }

func (m *Machine) fullName() string { return m.namespace() + "/" + m.Name }

// shown is a machine with its objects as kubectl shows them.
type shown struct {
	*Machine
	cleaned []map[string]any
}

type section struct {
	title string
	text  func(io.Writer) error // for people
	value any                   // the same as JSON
}

func (r *shown) sections(part Part, format Format) []section {
	name := r.fullName()
	all := []section{
		{"qemu", func(w io.Writer) error { return writeCommand(w, format, r.Command) }, r.Command},
		{"config", func(w io.Writer) error { return writeConfig(w, r.Config) }, r.Config},
		{"objects", func(w io.Writer) error { return writeObjects(w, r.cleaned) }, list(r.cleaned)},
		{"cloud-init", func(w io.Writer) error { return writeDocuments(w, r.CloudInit) }, documentsJSON(r.CloudInit)},
	}
	for i := range all {
		all[i].title = name + ": " + all[i].title
	}
	if part == All {
		if len(r.Objects) == 0 { // on one host
			return slices.Delete(all, 2, 3)
		}
		return all
	}
	i := slices.Index(parts, part)
	return all[i : i+1]
}

func list(objects []map[string]any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
}

// Write writes one part of the machines, or all parts. An empty part is [QEMU]; an empty format is
// [Shell] where there is a command line, otherwise [YAML]. On an error nothing is written.
func Write(w io.Writer, part Part, format Format, machines []Machine) error {
	part = cmp.Or(part, QEMU)
	if format == "" {
		format = part.format()
	}
	if err := check(part, format); err != nil {
		return err
	}
	all := make([]*shown, len(machines))
	for i := range machines {
		cleaned, err := cleanAll(machines[i].Objects)
		if err != nil {
			return fmt.Errorf("%s: %w", machines[i].fullName(), err)
		}
		all[i] = &shown{Machine: &machines[i], cleaned: cleaned}
	}
	var out bytes.Buffer
	if err := write(&out, part, format, all); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

func write(w io.Writer, part Part, format Format, all []*shown) error {
	switch {
	case format == JSON:
		return textout.WriteJSON(w, values(part, all))
	case format == YAML && (part == All || part == QEMU):
		return textout.WriteYAML(w, values(part, all))
	}
	titled := len(all) > 1 || part == All
	n := 0
	for _, r := range all {
		if part == All {
			for _, a := range r.Assumptions {
				fmt.Fprintf(w, "# %s: note: %s\n", r.fullName(), a)
			}
		}
		for _, s := range r.sections(part, format) {
			switch {
			case n > 0 && part != All && format == YAML:
				fmt.Fprintln(w, "---")
			case n > 0:
				fmt.Fprintln(w)
			}
			n++
			if titled {
				fmt.Fprintf(w, "# %s\n", s.title)
			}
			if err := s.text(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// values returns the value of one machine, and a list of values for several. Objects are always one
// list, as for kubectl.
func values(part Part, all []*shown) any {
	if part == Objects {
		items := []map[string]any{}
		for _, r := range all {
			items = append(items, r.cleaned...)
		}
		return list(items)
	}
	values := make([]any, len(all))
	for i, r := range all {
		if part != All {
			values[i] = r.sections(part, JSON)[0].value
			continue
		}
		values[i] = struct {
			Namespace   string              `json:"namespace"`
			Name        string              `json:"name"`
			QEMU        qemucmd.Command     `json:"qemu"`
			Config      runnerconfig.Config `json:"config"`
			Objects     []map[string]any    `json:"objects,omitempty"`
			CloudInit   any                 `json:"cloudInit,omitempty"`
			Assumptions []string            `json:"assumptions,omitempty"`
		}{r.namespace(), r.Name, r.Command, r.Config, r.cleaned, documentsJSON(r.CloudInit), r.Assumptions}
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}

func writeCommand(w io.Writer, format Format, c qemucmd.Command) error {
	if format != Argv {
		_, err := io.WriteString(w, c.Shell())
		return err
	}
	for _, a := range append([]string{c.Executable}, c.Args()...) {
		if strings.Contains(a, "\n") {
			return fmt.Errorf("the argument %q contains a line feed: use json", a)
		}
		fmt.Fprintln(w, a)
	}
	return nil
}

func writeConfig(w io.Writer, c runnerconfig.Config) error {
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// clean returns an object as kubectl shows it: with sorted keys and without an empty status.
func clean(o reconcile.Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if s, ok := m["status"].(map[string]any); ok && len(s) == 0 {
		delete(m, "status")
	}
	return m, nil
}

func cleanAll(objects []reconcile.Object) ([]map[string]any, error) {
	out := make([]map[string]any, len(objects))
	var errs []error
	for i, o := range objects {
		var err error
		out[i], err = clean(o)
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

func writeObjects(w io.Writer, objects []map[string]any) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if err := textout.WriteYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}

type seedJSON struct {
	MetaData      string  `json:"meta-data"`
	UserData      string  `json:"user-data"`
	NetworkConfig *string `json:"network-config,omitempty"`
}

func documentsJSON(docs *cloudinit.Documents) any {
	if docs == nil {
		return nil
	}
	out := seedJSON{MetaData: string(docs.MetaData), UserData: string(docs.UserData)}
	if docs.NetworkConfig != nil {
		out.NetworkConfig = new(string(docs.NetworkConfig))
	}
	return out
}

func writeDocuments(w io.Writer, docs *cloudinit.Documents) error {
	if docs == nil {
		_, err := fmt.Fprintln(w, "# no cloudInit in the manifest, and so no seed")
		return err
	}
	for i, d := range []struct {
		name string
		data []byte
	}{{"meta-data", docs.MetaData}, {"user-data", docs.UserData}, {"network-config", docs.NetworkConfig}} {
		if d.data == nil {
			fmt.Fprintf(w, "---\n# no %s\n", d.name)
			continue
		}
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		fmt.Fprintf(w, "# %s\n", d.name)
		if _, err := w.Write(d.data); err != nil {
			return err
		}
	}
	return nil
}
