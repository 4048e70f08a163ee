package main

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/reconcile"
)

func (p *program) eventsCommand() *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "list what happened to a cluster's machine",
		ArgsUsage: "NAME",
		Description: "Lists the Kubernetes events about the machine, its pod and its volume claims, the\n" +
			"oldest first. A cluster keeps them for an hour unless it was told otherwise.\n\n" +
			"Examples:\n" +
			"  vmop-cli events web\n" +
			"  vmop-cli events web -o json",
		Flags: clusterFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formatTable, Usage: "`FORMAT`: table or json"},
		),
		Action: p.events,
	}
}

func (p *program) events(c *cli.Context) error {
	format := c.String("output")
	if format != formatTable && format != formatJSON {
		return usagef(c, "--output %q: want table or json", format)
	}
	client, namespace, name, err := p.clusterMachine(c)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	vm, err := client.Machine(ctx, namespace, name)
	if err != nil {
		return err
	}
	var claims []string
	for _, d := range reconcile.Disks(vm) {
		if d.Claim != "" {
			claims = append(claims, d.Claim)
		}
	}
	found, err := client.Happenings(ctx, namespace, name, claims)
	if err != nil {
		return err
	}
	if format == formatJSON {
		if found == nil {
			found = []cluster.Happening{}
		}
		return writeJSON(p.stdout, found)
	}
	if len(found) == 0 {
		p.note("No events found.")
		return nil
	}
	now := time.Now()
	rows := make([][]string, len(found))
	for i, h := range found {
		last := age(now, h.Last)
		if h.Count > 1 {
			last += " (" + strconv.Itoa(h.Count) + " times over " + age(now, h.First) + ")"
		}
		rows[i] = []string{last, h.Type, h.Reason, h.Object, h.Message}
	}
	return table(p.stdout, []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, rows)
}
