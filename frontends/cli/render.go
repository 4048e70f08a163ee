package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// What render shows.
const (
	showQEMU      = "qemu"
	showConfig    = "config"
	showObjects   = "objects"
	showCloudInit = "cloud-init"
	showHost      = "host"
	showAll       = "all"
)

// How it is written.
const (
	formatShell = "shell"
	formatArgv  = "argv"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatTable = "table"
)

func (p *program) renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "show what manifests become",
		ArgsUsage: "FILE...",
		Description: "Shows what a cluster would make of a virtual machine:\n\n" +
			"  qemu        the QEMU command line; -o shell can be pasted into a shell, -o argv has\n" +
			"              one argument per line, -o json and yaml also have the files, sockets and\n" +
			"              helper processes that it needs\n" +
			"  config      the runner's config.yaml\n" +
			"  objects     the Kubernetes objects; the display password, which is generated, is left out.\n" +
			"              --operator-config has the operator's settings, such as the runner's image and\n" +
			"              the load balancer; without it they are VM-Operator's defaults. What the operator\n" +
			"              notes down for itself in annotations is as for a new machine of a cluster if the\n" +
			"              manifest is one of kubectl get -o yaml: owner, generation and digests depend\n" +
			"              on what is stored\n" +
			"  cloud-init  the documents for the guest's cloud-init\n" +
			"  host        the host that it is rendered for, in the form of --host\n" +
			"  all         all of these but the host\n\n" +
			"Nothing is started and nobody is asked: the same manifest gives the same text\n" +
			"everywhere. Where --host and --probe say nothing else, the host is Debian 12 with\n" +
			"QEMU 7.2, KVM, and the packages ovmf and swtpm. A UUID that the first start would\n" +
			"generate is derived from the machine's name. The class of a machine (VirtualMachineClass)\n" +
			"has to be among the files. With --local, it is what run would make\n" +
			"of the manifest on this host.\n\n" +
			"Examples:\n" +
			"  vmop-cli render vm.yaml\n" +
			"  vmop-cli render vm.yaml --show objects | kubectl diff -f -\n" +
			"  vmop-cli render vm.yaml --show all -o json --name web\n" +
			"  vmop-cli render --probe --show host -o json >host.json",
		Flags: append(append(selectFlags(),
			&cli.StringFlag{Name: "show", Value: showQEMU, Usage: "`WHAT`: qemu, config, objects, cloud-init, host or all"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT`: shell or argv (qemu only), json or yaml (default: shell for qemu, else yaml)"},
			&cli.StringFlag{Name: "host", Usage: "`FILE` with the facts about the host, JSON"},
			&cli.BoolFlag{Name: "probe", Usage: "ask this machine's QEMU what it offers", DisableDefaultText: true},
			&cli.StringFlag{Name: "template", Usage: "`FILE` with the text of the machine type that runnerTemplate.source names"},
			&cli.StringFlag{Name: "operator-config", Usage: "the operator's configuration `FILE`, for the objects"},
			&cli.BoolFlag{Name: "local", Usage: "show what run would make of it on this host, with the flags of run", DisableDefaultText: true},
		), localFlags()...),
		Action: p.render,
	}
}

// renderWish is what --show and --output say, and what it excludes.
func renderWish(c *cli.Context) (show, format string, err error) {
	show, format = c.String("show"), c.String("output")
	if !slices.Contains([]string{showQEMU, showConfig, showObjects, showCloudInit, showHost, showAll}, show) {
		return "", "", usagef(c, "--show %q: want qemu, config, objects, cloud-init, host or all", show)
	}
	text := show == showQEMU || show == showAll
	switch {
	case format == "" && text:
		format = formatShell
	case format == "":
		format = formatYAML
	case !slices.Contains([]string{formatShell, formatArgv, formatJSON, formatYAML}, format):
		return "", "", usagef(c, "--output %q: want shell, argv, json or yaml", format)
	case !text && (format == formatShell || format == formatArgv):
		return "", "", usagef(c, "--output %s is for QEMU's command line: --show %s has json and yaml", format, show)
	}
	if c.String("host") != "" && c.Bool("probe") {
		return "", "", usagef(c, "--host and --probe: want one of them")
	}
	if show == showObjects && c.Bool("local") {
		return "", "", usagef(c, "--local and --show objects: there are no Kubernetes objects without a cluster")
	}
	return show, format, nil
}

func (p *program) render(c *cli.Context) error {
	show, format, err := renderWish(c)
	if err != nil {
		return err
	}
	if show == showHost {
		return p.renderHostFacts(c, format)
	}
	files, err := needFiles(c)
	if err != nil {
		return err
	}
	objects, others, err := p.machinesAndOthers(files, selected(c))
	if err != nil {
		return err
	}
	if len(objects) == 0 && !slices.ContainsFunc(others, func(o spec.Object) bool { return o.VmPool != nil }) {
		return noMachine(files, selected(c), others)
	}
	if len(objects) == 0 {
		p.note("Nothing to render: there are pools only, of which nothing is made.")
	}
	options, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	if len(objects) > 1 && format == formatArgv {
		return usagef(c, "--output argv is for one machine, and there are %d: choose one with --name and --namespace", len(objects))
	}
	all, err := p.renderAll(c, objects, options)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeRenderings(&out, show, format, all); err != nil {
		return err
	}
	_, err = p.stdout.Write(out.Bytes())
	return err
}

// renderOptions are what the flags say about all machines.
func (p *program) renderOptions(c *cli.Context) (vmop.RenderOptions, error) {
	var o vmop.RenderOptions
	var err error
	if o.Host, err = p.renderHost(c); err != nil {
		return o, err
	}
	if file := c.String("template"); file != "" {
		_, data, err := p.read(file)
		if err != nil {
			return o, err
		}
		o.Template = qemucmd.Template(string(data))
	}
	o.Settings, err = p.operatorSettings(c)
	return o, err
}

// renderAll renders machines, or tells what is wrong with each.
func (p *program) renderAll(c *cli.Context, objects []spec.Object, options vmop.RenderOptions) ([]*rendering, error) {
	var all []*rendering
	failed := false
	for i := range objects {
		o, options := &objects[i], options
		p.withoutClass(o)
		if name := o.VirtualMachine.Spec.VirtualMachineClassName; name != "" && !c.Bool("local") {
			p.report([]spec.Problem{o.Problem("spec.virtualMachineClassName", "names the class "+name+", which is not among the files: name the file with VirtualMachineClass "+name+", too")})
			failed = true
			continue
		}
		if c.Bool("local") {
			if err := p.renderLocal(c, o, &options); err != nil {
				return nil, err
			}
		}
		r, err := vmop.Render(o.VirtualMachine, options)
		if err != nil {
			p.report(problemsOf(o, err))
			failed = true
			continue
		}
		shown := &rendering{object: o, Rendered: r}
		if shown.objects, err = cleanAll(r.Objects); err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	if failed {
		return nil, errSilent
	}
	return all, nil
}

// renderHostFacts shows the host alone.
func (p *program) renderHostFacts(c *cli.Context, format string) error {
	if c.NArg() > 0 {
		return usagef(c, "--show host takes no FILE: the host does not depend on machines")
	}
	host, err := p.renderHost(c)
	if err != nil {
		return err
	}
	if host == nil {
		generic := qemucmd.GenericHost()
		host = &generic
	}
	return write(p.stdout, format, host)
}

// renderHost is the host that is rendered for; nil is the generic one.
func (p *program) renderHost(c *cli.Context) (*qemucmd.Host, error) {
	switch {
	case c.Bool("probe"):
		result, err := p.probe(c.Context)
		return &result.Host, err
	case c.String("host") != "":
		return p.readHost(c.String("host"))
	}
	return nil, nil
}

// operatorSettings are those of the operator's configuration file.
func (p *program) operatorSettings(c *cli.Context) (objects.Settings, error) {
	file := c.String("operator-config")
	if file == "" {
		return objects.Settings{}, nil
	}
	name, data, err := p.read(file)
	if err != nil {
		return objects.Settings{}, err
	}
	parsed, remarks, err := operatorconfig.Parse(name, data)
	for _, w := range remarks.Warnings {
		p.note("Warning: %s", w)
	}
	return parsed.Settings, err
}

// renderLocal makes the options those of a machine on this host, with what is
// known of it if it ran here before.
func (p *program) renderLocal(c *cli.Context, o *spec.Object, options *vmop.RenderOptions) error {
	h, err := p.host(c)
	if err != nil {
		return err
	}
	given, err := p.givenTo(c, h, o)
	if err != nil {
		return err
	}
	local, err := h.Local(o, given)
	if err != nil {
		return err
	}
	options.Local = &local
	m, err := h.Machine(o.Namespace, o.Name)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	options.UUID, options.MachineType, options.AddressMap = m.State.UUID, m.State.MachineType, m.State.AddressMap
	if options.AddressMap == 0 && options.MachineType != "" {
		options.AddressMap = 1 // by a runner that knew no other
	}
	return err
}

func (p *program) readHost(file string) (*qemucmd.Host, error) {
	h := &qemucmd.Host{}
	name, data, err := p.read(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(h); err != nil {
		return nil, fmt.Errorf("host facts %s: %w", name, err)
	}
	if err := d.Decode(new(json.RawMessage)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("host facts %s: more than one JSON value", name)
	}
	if h.QEMU == "" {
		return nil, fmt.Errorf("host facts %s: qemu is missing, the path of QEMU", name)
	}
	return h, nil
}

// section is one part of what is shown of one machine.
type section struct {
	title string
	text  func(io.Writer) error // the form for people
	value any                   // the same as JSON
}

func (r *rendering) sections(show, format string) []section {
	name := fullName(r.object.Namespace, r.object.Name)
	all := []section{
		{"qemu", func(w io.Writer) error { return writeCommand(w, format, r.Command) }, r.Command},
		{"config", func(w io.Writer) error { return writeConfig(w, r.Config) }, r.Config},
		{"objects", func(w io.Writer) error { return writeObjects(w, r.objects) }, list(r.objects)},
		{"cloud-init", func(w io.Writer) error { return writeDocuments(w, r.CloudInit) }, documentsJSON(r.CloudInit)},
	}
	for i := range all {
		all[i].title = name + ": " + all[i].title
	}
	if show == showAll {
		if len(r.Objects) == 0 { // on one host
			return slices.Delete(all, 2, 3)
		}
		return all
	}
	i := slices.Index([]string{showQEMU, showConfig, showObjects, showCloudInit}, show)
	return all[i : i+1]
}

// list is what kubectl takes for several objects in one.
func list(objects []map[string]any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
}

// writeRenderings writes what is shown of all machines.
func writeRenderings(w io.Writer, show, format string, all []*rendering) error {
	if format == formatJSON || format == formatYAML && (show == showAll || show == showQEMU) {
		return write(w, format, renderingsJSON(show, all))
	}
	titled := len(all) > 1 || show == showAll
	n := 0
	for _, r := range all {
		if show == showAll {
			for _, a := range r.Assumptions {
				fmt.Fprintf(w, "# %s: note: %s\n", fullName(r.object.Namespace, r.object.Name), a)
			}
		}
		for _, s := range r.sections(show, format) {
			switch {
			case n > 0 && show != showAll && format == formatYAML:
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

// renderingsJSON is one value for one machine and a list of them for several.
// Objects are always one list, which kubectl takes.
func renderingsJSON(show string, all []*rendering) any {
	if show == showObjects {
		items := []map[string]any{}
		for _, r := range all {
			items = append(items, r.objects...)
		}
		return list(items)
	}
	values := make([]any, len(all))
	for i, r := range all {
		if show != showAll {
			values[i] = r.sections(show, formatJSON)[0].value
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
		}{namespaceOr(r.object.Namespace), r.object.Name, r.Command, r.Config, r.objects, documentsJSON(r.CloudInit), r.Assumptions}
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}

func write(w io.Writer, format string, v any) error {
	if format == formatJSON {
		return writeJSON(w, v)
	}
	return writeYAML(w, v)
}

func writeCommand(w io.Writer, format string, c qemucmd.Command) error {
	if format != formatArgv {
		_, err := io.WriteString(w, c.Shell())
		return err
	}
	for _, a := range append([]string{c.Executable}, c.Args()...) {
		if strings.Contains(a, "\n") {
			return fmt.Errorf("the argument %q contains a line feed: use --output json", a)
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

// clean is an object as kubectl shows it: its keys sorted, and nothing where
// the cluster would have its status.
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
		if err := writeYAML(w, o); err != nil {
			return err
		}
	}
	return nil
}

// seedJSON are the documents for cloud-init as JSON has them.
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
		s := string(docs.NetworkConfig)
		out.NetworkConfig = &s
	}
	return out
}

// writeDocuments writes the documents as one stream of YAML.
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
