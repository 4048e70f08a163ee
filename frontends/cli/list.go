package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/runner"
)

func (p *program) listCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Aliases:   []string{"ls"},
		Usage:     "list the machines of this host, or of a cluster",
		ArgsUsage: " ",
		Description: "Lists the machines that were run here, whether they run or not. AGE is the time since\n" +
			"the machine got its status. A machine is Orphaned if its runner was killed while the\n" +
			"guest runs on; run ends that guest and starts it anew, stop stops it. It is Paused if\n" +
			"its processors stand still: see resume. READY is True while the guest executes, and\n" +
			"Unknown while nobody is there who would know. At a terminal, a MESSAGE ends with the\n" +
			"line: -o wide has all of it, and so has describe; it has the addresses that the guest's\n" +
			"agent knows and the ports that lead to the guest, too. With --leftovers, deleted machines whose\n" +
			"disks or identity were kept are listed, too; create makes a machine that has them again.\n\n" +
			"Examples:\n" +
			"  vmop-cli list\n" +
			"  vmop-cli list -o json\n" +
			"  vmop-cli list --cluster -A",
		Flags: eitherFlags(
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "only machines of this `NAMESPACE`; in a cluster the context's unless told otherwise"},
			dataDirFlag(),
			outputFlag("", formatTable, formatWide),
			&cli.BoolFlag{Name: "leftovers", Usage: "on this host: deleted machines, too, of which something is left", DisableDefaultText: true},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "in a cluster: the machines of all namespaces", DisableDefaultText: true},
		),
		Action: p.list,
	}
}

type listed struct {
	Namespace, Name string
	Status          host.Status
	// Ready reports whether the guest executes: True, False or Unknown.
	Ready   string
	Since   time.Time
	Message string
	CPUs    int
	RAM     int64
	// Addresses and Ports are those of the guest; for the wide table.
	Addresses, Ports string
}

func (p *program) list(c *cli.Context) error {
	format, err := outputFormat(c, formatTable, formatWide)
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		return usagef(c, "list takes no arguments, and found %q", c.Args().First())
	}
	if inCluster(c) {
		if c.Bool("leftovers") {
			return usagef(c, "--leftovers is for this host; for a cluster there is the command leftovers")
		}
		return p.clusterList(c, format)
	}
	if c.Bool("all-namespaces") {
		return usagef(c, "--all-namespaces is for a cluster (--cluster, --context or --kubeconfig): on this host all are listed")
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	machines, err := h.List(host.ListOptions{Namespace: c.String("namespace"), Leftovers: c.Bool("leftovers")})
	if err != nil {
		return err
	}
	if forPrograms(format) {
		printed := []output.Machine{}
		for _, m := range machines {
			printed = append(printed, p.printedHere(h, &m))
		}
		return printList(p, format, printed)
	}
	out := []listed{}
	for _, m := range machines {
		l := listedOf(&m)
		if format == formatWide && m.Running() {
			l.Addresses = guestAddresses(&m.State.Guest)
			if o, err := m.Object(); err == nil { // the ports of one that cannot be read are unknown
				l.Ports = ports(o.VirtualMachine, "127.0.0.1")
			}
		}
		if m.Status == host.StatusDeleted {
			l.Message = p.leftText(c, &m)
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		p.note("No machines found.")
		return nil
	}
	now := time.Now()
	rows := make([][]string, len(out))
	for i, m := range out {
		cpus, ram := textout.None, textout.None
		if m.CPUs > 0 {
			cpus, ram = strconv.Itoa(m.CPUs), textout.Size(m.RAM)
		}
		rows[i] = []string{m.Namespace, m.Name, string(m.Status), m.Ready, cpus, ram, textout.Age(now, m.Since)}
		if format == formatWide {
			rows[i] = append(rows[i], textout.OrNone(m.Addresses), textout.OrNone(m.Ports))
		}
		rows[i] = append(rows[i], textout.OneLine(m.Message))
	}
	head := []string{"NAMESPACE", "NAME", "STATUS", "READY", "CPUS", "MEMORY", "AGE"}
	if format == formatWide {
		head = append(head, "ADDRESS", "PORTS")
	}
	return textout.TableWithin(p.stdout, p.listWidth(format), append(head, "MESSAGE"), rows)
}

// guestAddresses returns those that are not link-local.
func guestAddresses(g *runner.Guest) string {
	var out []string
	for _, i := range g.Interfaces {
		for _, a := range i.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil && p.Addr().IsGlobalUnicast() {
				out = append(out, p.Addr().String())
			}
		}
	}
	return strings.Join(out, ", ")
}

// leftText describes what is left of a deleted machine, and how to delete it. Files that were not
// created here stay.
func (p *program) leftText(c *cli.Context, m *host.Machine) string {
	files, err := m.Files()
	if err != nil {
		return err.Error()
	}
	var left []string
	for _, f := range files {
		if f.Kind != host.FileForeign {
			left = append(left, fmt.Sprintf("%s (%s)", f.Name, textout.Size(f.Size)))
		}
	}
	if len(left) == 0 {
		return "files of somebody else in " + m.Data
	}
	return strings.Join(left, ", ") + "; " + p.hint(c, "delete", "--disks", m.FullName()) + " deletes it"
}

func listedOf(m *host.Machine) listed {
	l := listed{Namespace: m.Namespace, Name: m.Name, Status: m.Status, Ready: string(m.Ready()), Since: m.State.Since, Message: m.Message()}
	if m.Running() {
		l.CPUs, l.RAM = m.State.CPUs, m.State.RAM
	}
	return l
}
