package main

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
)

// clusterList lists all machines that can be read despite errors.
func (p *program) clusterList(c *cli.Context, format string) error {
	client, err := p.connect(c)
	if err != nil {
		return err
	}
	namespace := client.Namespace
	if c.Bool("all-namespaces") {
		namespace = ""
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	machines, failed := client.Machines(ctx, namespace)
	if machines == nil && failed != nil {
		return failed
	}
	if forPrograms(format) {
		printed := make([]output.Machine, len(machines))
		for i, vm := range machines {
			printed[i] = printedFromCluster(vm, nil)
		}
		if err := printList(p, format, printed); err != nil {
			return err
		}
		return failed
	}
	out := make([]clusterListed, len(machines))
	for i, vm := range machines {
		out[i] = listMachine(vm)
	}
	if len(out) == 0 {
		p.note("No machines found.")
		return failed
	}
	now := time.Now()
	rows := make([][]string, len(out))
	for i, m := range out {
		cpus, ram := textout.None, textout.None
		if m.CPUs > 0 {
			cpus, ram = strconv.Itoa(int(m.CPUs)), textout.Size(m.RAM)
		}
		message := m.Message
		if message == "" && m.NeedRestart {
			message = "changes wait for a restart"
		}
		rows[i] = []string{m.Namespace, m.Name, textout.OrNone(m.Status), textout.OrNone(m.Ready), textout.OrNone(m.Node), textout.OrNone(m.Address), cpus, ram, textout.Age(now, m.Created)}
		if format == formatWide {
			rows[i] = append(rows[i], textout.OrNone(m.Ports))
		}
		rows[i] = append(rows[i], message)
	}
	head := []string{"NAMESPACE", "NAME", "STATUS", "READY", "NODE", "ADDRESS", "CPUS", "MEMORY", "AGE"}
	if format == formatWide {
		head = append(head, "PORTS")
	}
	if err := textout.TableWithin(p.stdout, p.listWidth(format), append(head, "MESSAGE"), rows); err != nil {
		return err
	}
	return failed
}
