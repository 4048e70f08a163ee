package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/takeover"
)

// exitTakeoverError is the code of an error, where 1 means that something has to be done.
const exitTakeoverError = 3

func (p *program) takeoverCommand() *cli.Command {
	return &cli.Command{
		Name:  "takeover",
		Usage: "say what becomes of a cluster of VM-Operator when vmop takes it over",
		Description: "Looks at a cluster, or at files, and lists machine by machine what has to be done before\n" +
			"the switch, what will be different, and what stays. Nothing is changed, and no secret is\n" +
			"read. docs/from-vm-operator.md is the walk-through.\n\n" +
			"With --install it also says where what is going to be installed meets something that is\n" +
			"there and is not vmop's, or that Kubernetes does not let be changed.\n\n" +
			"Examples:\n" +
			"  vmop-cli takeover --check -n qemu-vms\n" +
			"  kubectl kustomize my-vmop | vmop-cli takeover --check -n qemu-vms --install -\n" +
			"  vmop-cli takeover --check --from manifests/ --operator-config config.yaml",
		Flags: append(clusterFlags(),
			&cli.BoolFlag{Name: "check", Usage: "look and tell, which is all that there is to it", DisableDefaultText: true},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "the machines of all namespaces", DisableDefaultText: true},
			&cli.StringSliceFlag{Name: "from", Usage: "look at the objects in `DIR` or FILE instead of a cluster"},
			&cli.StringSliceFlag{Name: "install", Usage: "`DIR` or FILE with the objects that are going to be installed, as kubectl kustomize writes them; - is the standard input"},
			&cli.StringFlag{Name: "operator-config", Usage: "`FILE` with the operator's configuration (default: that of --install, which has the settings in any case)"},
			outputFlag("", formatTable),
		),
		Action: p.takeover,
	}
}

func (p *program) takeover(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	switch {
	case !c.Bool("check"):
		return usagef(c, "--check is missing: it is the only thing that this command does; docs/from-vm-operator.md has the rest")
	case c.NArg() > 0:
		return usagef(c, "unexpected argument %q: files are named by --from and --install", c.Args().First())
	}
	in, err := p.takeoverInput(c)
	if err != nil {
		return &exitStatus{code: exitTakeoverError, err: err}
	}
	found := takeover.Check(in)
	if forPrograms(format) {
		err = printList(p, format, printedTakeover(found))
	} else {
		err = p.writeFindings(found)
	}
	if err != nil {
		return &exitStatus{code: exitTakeoverError, err: err}
	}
	if takeover.Pending(found) {
		return errSilent
	}
	return nil
}

func (p *program) takeoverInput(c *cli.Context) (takeover.Input, error) {
	var in takeover.Input
	var err error
	if in.Install, err = p.objectsOf(c.StringSlice("install")); err != nil {
		return in, err
	}
	in.Operator = takeover.Configured(in.Install)
	if file := c.String("operator-config"); file != "" {
		_, data, err := p.read(file)
		if err != nil {
			return in, err
		}
		in.Operator.File = string(data)
	}
	if from := c.StringSlice("from"); len(from) > 0 {
		in.Objects, err = p.objectsOf(from)
		namespace := c.String("namespace")
		for i := range in.Objects {
			if o := &in.Objects[i]; o.GetNamespace() == "" && takeover.Namespaced(o.GetKind()) {
				o.SetNamespace(namespaceOr(namespace))
			}
		}
		return in, err
	}
	client, err := p.connect(c)
	if err != nil {
		return in, err
	}
	namespace := client.Namespace
	if c.Bool("all-namespaces") {
		namespace = ""
	}
	ctx, cancel := bounded(c, 4*requestTimeout, "the API server did not answer")
	defer cancel()
	survey, err := client.Survey(ctx, namespace, in.Install)
	in.Objects, in.Unseen = survey.Objects, survey.Unseen
	return in, err
}

// objectsOf reads the objects of files, and of all manifests in directories; - is the standard
// input.
func (p *program) objectsOf(names []string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	var errs []error
	for _, name := range names {
		files, err := manifestFiles(name)
		errs = append(errs, err)
		for _, file := range files {
			shown, data, err := p.read(file)
			if err == nil {
				var found []unstructured.Unstructured
				found, err = parseObjects(shown, data)
				out = append(out, found...)
			}
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func manifestFiles(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	var out []string
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			if path != name {
				return nil
			}
		}
		// A kustomization is not an object; its output is read with --install -.
		if base := filepath.Base(path); path == name || base != "kustomization.yaml" && base != "kustomization.yml" {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// parseObjects reads the objects that have a kind, including items of lists.
func parseObjects(name string, data []byte) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for n := 1; ; n++ {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
		case o.GetKind() == "":
		case o.IsList():
			list, err := o.ToList()
			if err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
			}
			out = append(out, list.Items...)
		default:
			out = append(out, o)
		}
	}
}

func (p *program) writeFindings(found []takeover.Finding) error {
	var b strings.Builder
	last := ""
	for i := range found {
		f := &found[i]
		if o := f.Object(); o != last {
			if last != "" {
				b.WriteByte('\n')
			}
			fmt.Fprintln(&b, textout.Cell(o))
			last = o
		}
		what := f.What
		if f.Field != "" {
			what = f.Field + ": " + what
		}
		fmt.Fprintf(&b, "  %-7s  %s\n", f.Urgency, textout.Cell(what))
		if f.Do != "" {
			fmt.Fprintf(&b, "           do: %s\n", textout.Cell(f.Do))
		}
	}
	if len(found) == 0 {
		p.note("Nothing of VM-Operator found.")
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}
