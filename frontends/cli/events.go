package main

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) eventsCommand() *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "list what happened to a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Lists what happened to a machine that was run in the background, from its log. In a\n" +
			"cluster, lists the Kubernetes events about the machine, its pod and its volume claims,\n" +
			"which a cluster keeps for an hour unless it was told otherwise. The oldest comes first.\n\n" +
			"Examples:\n" +
			"  vmop-cli events hello\n" +
			"  vmop-cli events --cluster web -o json",
		Flags: eitherFlags(machineFlags(
			outputFlag("", formatTable),
		)...),
		Action: p.events,
	}
}

func (p *program) events(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	if !inCluster(c) {
		return p.eventsHere(c, format)
	}
	return p.withMachine(c, func(ctx context.Context, client *cluster.Client, vm *spec.VirtualMachine) error {
		var claims []string
		for _, d := range machineconfig.Disks(vm) {
			if d.Claim != "" {
				claims = append(claims, d.Claim)
			}
		}
		found, err := client.Happenings(ctx, vm, claims)
		if err != nil {
			return err
		}
		return p.writeEvents(format, vm.Namespace, found)
	})
}

// eventsHere lists what a machine's runner did and encountered, from its log without the output of
// other processes.
func (p *program) eventsHere(c *cli.Context, format string) error {
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	f, lines, err := readLog(&m)
	if err != nil {
		return err
	}
	var found []cluster.Happening
	for _, line := range lines {
		_, text, _ := strings.Cut(line.text, " ")
		kind := "Normal"
		for _, level := range []string{"warning: ", "error: "} {
			if rest, ok := strings.CutPrefix(text, level); ok {
				kind, text = "Warning", rest
			}
		}
		if line.time.IsZero() || strings.HasPrefix(text, "qemu: ") || strings.HasPrefix(text, "swtpm: ") || strings.HasPrefix(text, "virtiofsd: ") {
			continue
		}
		found = append(found, cluster.Happening{First: line.time, Last: line.time, Count: 1, Type: kind, Object: "VirtualMachine/" + m.Name, Message: text})
	}
	return errors.Join(p.writeEvents(format, m.Namespace, found), f.Close())
}

func (p *program) writeEvents(format, namespace string, found []cluster.Happening) error {
	if forPrograms(format) {
		return printList(p, format, printedEvents(namespace, found))
	}
	if len(found) == 0 {
		p.note("No events found.")
		return nil
	}
	now := time.Now()
	rows := make([][]string, len(found))
	for i, h := range found {
		last := textout.Age(now, h.Last)
		if h.Count > 1 {
			last += " (" + strconv.Itoa(h.Count) + " times over " + textout.Age(now, h.First) + ")"
		}
		rows[i] = []string{last, h.Type, textout.OrNone(h.Reason), h.Object, h.Message}
	}
	return textout.Table(p.stdout, []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, rows)
}

func printedEvents(namespace string, found []cluster.Happening) []output.Event {
	out := make([]output.Event, len(found))
	for i, h := range found {
		kind, name, _ := strings.Cut(h.Object, "/")
		out[i] = output.Event{
			ObjectMeta:     named(namespace, h.Name),
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
			Type:           h.Type, Reason: h.Reason, Message: h.Message, Count: int32(min(h.Count, math.MaxInt32)),
			FirstTimestamp: metav1.NewTime(h.First), LastTimestamp: metav1.NewTime(h.Last),
		}
	}
	return out
}
