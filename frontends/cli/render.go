package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/rendering"
	"github.com/vmop/sdk/vmop/spec"
)

const showHost = "host"

const (
	formatShell = string(rendering.Shell)
	formatArgv  = string(rendering.Argv)
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
			&cli.StringFlag{Name: "show", Value: string(rendering.QEMU), Usage: "`WHAT`: qemu, config, objects, cloud-init, host or all"},
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

func renderFlags(c *cli.Context) (show, format string, err error) {
	show, format = c.String("show"), c.String("output")
	part := rendering.Part(show)
	if !slices.Contains([]rendering.Part{rendering.QEMU, rendering.Config, rendering.Objects, rendering.CloudInit, showHost, rendering.All}, part) {
		return "", "", usagef(c, "--show %q: want qemu, config, objects, cloud-init, host or all", show)
	}
	text := part.HasCommand()
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
	if part == rendering.Objects && c.Bool("local") {
		return "", "", usagef(c, "--local and --show objects: there are no Kubernetes objects without a cluster")
	}
	return show, format, nil
}

func (p *program) render(c *cli.Context) error {
	show, format, err := renderFlags(c)
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
	want := selected(c)
	if c.Bool("local") {
		want.here = always
	}
	objects, others, err := p.machinesAndOthers(files, want)
	if err != nil {
		return err
	}
	if len(objects) == 0 && !slices.ContainsFunc(others, func(o spec.Object) bool { return o.VmPool != nil }) {
		return noMachine(files, want, others)
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
	return rendering.Write(p.stdout, rendering.Part(show), rendering.Format(format), all)
}

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

// renderAll renders machines, or prints the problems of each.
func (p *program) renderAll(c *cli.Context, objects []spec.Object, options vmop.RenderOptions) ([]rendering.Machine, error) {
	var all []rendering.Machine
	failed := false
	for i := range objects {
		o, options := &objects[i], options
		p.withoutClass(o)
		if name := o.VirtualMachine.Spec.VirtualMachineClassName; name != "" && !c.Bool("local") {
			p.report(asFindings(output.SeverityError, o.Problem("spec.virtualMachineClassName", "names the class "+name+", which is not among the files: name the file with VirtualMachineClass "+name+", too")))
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
			p.report(asFindings(output.SeverityError, problemsOf(o, err)...))
			failed = true
			continue
		}
		all = append(all, rendering.Machine{Namespace: o.Namespace, Name: o.Name, Rendered: r})
	}
	if failed {
		return nil, errSilent
	}
	return all, nil
}

func (p *program) renderHostFacts(c *cli.Context, format string) error {
	if c.NArg() > 0 {
		return usagef(c, "--show host takes no FILE: the host does not depend on machines")
	}
	host, err := p.renderHost(c)
	if err != nil {
		return err
	}
	if host == nil {
		host = new(qemucmd.GenericHost())
	}
	return write(p.stdout, format, host)
}

// renderHost returns the host to render for; nil is the generic one.
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

// renderLocal sets the options for a machine on this host, with what is known from its earlier
// runs.
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

func write(w io.Writer, format string, v any) error {
	if format == formatJSON {
		return textout.WriteJSON(w, v)
	}
	return textout.WriteYAML(w, v)
}
