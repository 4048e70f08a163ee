package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/output"
)

func (p *program) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "look into a machine, on this host or in a cluster, or into an image",
		ArgsUsage: "NAME | FILE | --socket PATH",
		Description: "NAME is a machine of this host: what QEMU says about it, beside what its manifest\n" +
			"wants. --socket asks any QEMU, by the path of its QMP socket.\n" +
			"FILE is a disk image or the seed image of cloud-init: its format, size, partitions,\n" +
			"file systems and documents. What has a / in front or behind a . is a FILE; of other\n" +
			"names, machines come first.\n\n" +
			"Examples:\n" +
			"  vmop-cli inspect hello\n" +
			"  vmop-cli inspect --socket qmp.sock -o json\n" +
			"  vmop-cli inspect ./debian.qcow2\n" +
			"  vmop-cli inspect --context lab -n shop web",
		Flags: eitherFlags(machineFlags(
			&cli.StringFlag{Name: "socket", Usage: "`PATH` of a QMP socket"},
			outputFlag("", formatTable),
		)...),
		Action: p.inspect,
	}
}

func (p *program) inspect(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	if inCluster(c) {
		if c.String("socket") != "" {
			return usagef(c, "--socket is for a QEMU of this host")
		}
		return p.clusterInspect(c, format)
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if socket := c.String("socket"); socket != "" {
		if c.NArg() > 0 {
			return usagef(c, "--socket and %q: want one of them", c.Args().First())
		}
		report := inspect.Report{Status: host.StatusRunning}
		if err := p.askMonitor(ctx, socket, report.Query); err != nil {
			return err
		}
		return p.writeReport(format, &report, output.Machine{})
	}
	if c.NArg() != 1 {
		return usagef(c, "want one NAME or FILE, and found %s", arguments(c.NArg()))
	}
	arg := c.Args().First()
	if filepath.IsAbs(arg) || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
		return p.inspectImage(ctx, format, arg)
	}
	m, err := p.find(c, arg)
	if errors.Is(err, host.ErrNotFound) {
		switch _, ferr := os.Stat(arg); {
		case ferr == nil:
			return p.inspectImage(ctx, format, arg)
		case errors.Is(ferr, fs.ErrNotExist):
			meant := ""
			if h, err := p.host(c); err == nil {
				if near := nearMachine(c, h, arg); near != "" {
					meant = ". Did you mean " + near + "?"
				}
			}
			return fmt.Errorf("%s is neither a machine of this host (see %s) nor a file%s", arg, p.hint(c, "list"), meant)
		}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, monitorDeadline)
	defer cancel()
	g := p.begin("waiting for QEMU's monitor")
	report, err := inspect.Machine(ctx, &m)
	g.end()
	if report.ManifestError != nil {
		p.note("The manifest of %s cannot be used: %v", m.FullName(), report.ManifestError)
	}
	if err != nil {
		return err
	}
	base := output.Machine{}
	if forPrograms(format) {
		h, err := p.host(c)
		if err != nil {
			return err
		}
		m.Status = report.Status // QEMU was asked about the files
		base = p.printedHere(h, &m)
	}
	return p.writeReport(format, &report, base)
}

func (p *program) inspectImage(ctx context.Context, format, path string) error {
	if isYAML(path) {
		return fmt.Errorf("%s is a text in YAML or JSON, and no image: want the NAME of a machine or an image. What a manifest makes of a machine is shown by: %s", path, shellwords.Join("vmop-cli", "render", path))
	}
	g := p.begin("reading " + path)
	report, err := imageinspect.Inspect(ctx, path)
	g.end()
	if err != nil {
		return err
	}
	if forPrograms(format) {
		return p.printOne(format, printedImage(&report))
	}
	return inspect.WriteImage(p.stdout, &report)
}

// maxYAML limits the size of a file that is checked for being YAML, in bytes.
const maxYAML = 1 << 20

// isYAML reports whether a file is a YAML mapping, as manifests and cloud-init documents are. Any
// file can be taken for a raw image otherwise.
func isYAML(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxYAML {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	first, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("---\n")), []byte("\n---"))
	tree, err := yamljson.ToJSON(first)
	return err == nil && bytes.HasPrefix(tree, []byte("{"))
}

// writeReport writes a report; base has what is known of the machine, if it has a name.
func (p *program) writeReport(format string, r *inspect.Report, base output.Machine) error {
	if forPrograms(format) {
		printed := printedReport(r, base)
		return p.printOne(format, &printed)
	}
	return r.WriteText(p.stdout)
}
