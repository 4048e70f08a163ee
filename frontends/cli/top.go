package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/output"
)

func (p *program) topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "show what the machines of this host use",
		ArgsUsage: "[NAME]",
		Description: "Looks at the machines that run, or at one, twice within --interval, and shows what they\n" +
			"use: CPU in percent of one processor of this host, MEMORY what QEMU has of it, and\n" +
			"what is read, written, received and sent in a second. Networks of QEMU's own (user)\n" +
			"are not counted. As JSON it also has what was used since the start.\n\n" +
			"Examples:\n" +
			"  vmop-cli top\n" +
			"  vmop-cli top web --interval 5s -o json",
		Flags: machineFlags(
			&cli.DurationFlag{Name: "interval", Value: time.Second, Usage: "the `DURATION` between the two looks"},
			outputFlag("", formatTable),
		),
		Action: p.top,
	}
}

// used is the usage of a machine: bytes, seconds, and bytes per second.
type used struct {
	Namespace            string
	Name                 string
	CPU                  float64 // processors of this host
	CPUSeconds           float64
	Memory               int64
	DiskReadPerSecond    float64
	DiskWrittenPerSecond float64
	DiskRead             int64
	DiskWritten          int64
	// at is the end of the measurement, window its duration.
	at     time.Time
	window time.Duration
	// Net is nil if no network traffic is counted.
	Net *usedNet
}

type usedNet struct {
	ReceivedPerSecond float64
	SentPerSecond     float64
	Received          int64
	Sent              int64
}

func (p *program) top(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	interval := c.Duration("interval")
	switch {
	case interval <= 0:
		return usagef(c, "--interval %v: want more than 0", interval)
	case c.NArg() > 1:
		return usagef(c, "want the NAME of one machine or none, and found %s", arguments(c.NArg()))
	}
	machines, err := p.topMachines(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	look := func() ([]host.Usage, []error) {
		usage, errs := make([]host.Usage, len(machines)), make([]error, len(machines))
		var all sync.WaitGroup
		for i := range machines {
			all.Go(func() { usage[i], errs[i] = machines[i].Usage(ctx) })
		}
		all.Wait()
		return usage, errs
	}
	before, errs := look()
	if len(machines) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
	after, more := look()
	out := []used{}
	var failed []error
	for i, m := range machines {
		err := errs[i]
		if err == nil {
			err = more[i]
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, usedOf(&m, before[i], after[i]))
	}
	if len(out) > 0 || len(failed) == 0 {
		if err := p.showTop(format, out); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (p *program) topMachines(c *cli.Context) ([]host.Machine, error) {
	if c.NArg() == 1 {
		m, err := p.find(c, c.Args().First())
		return []host.Machine{m}, err
	}
	h, err := p.host(c)
	if err != nil {
		return nil, err
	}
	all, err := h.List(host.ListOptions{Namespace: c.String("namespace")})
	var out []host.Machine
	for _, m := range all {
		if m.QEMU != 0 {
			out = append(out, m)
		}
	}
	return out, err
}

func usedOf(m *host.Machine, before, after host.Usage) used {
	l := after.Since(before)
	u := used{
		at: after.At, window: after.At.Sub(before.At),
		Namespace: m.Namespace, Name: m.Name, CPU: l.CPU, CPUSeconds: after.CPU.Seconds(), Memory: after.Memory,
		DiskReadPerSecond: l.DiskRead, DiskWrittenPerSecond: l.DiskWritten, DiskRead: after.DiskRead, DiskWritten: after.DiskWritten,
	}
	if after.Taps > 0 {
		u.Net = &usedNet{ReceivedPerSecond: l.NetReceived, SentPerSecond: l.NetSent, Received: after.NetReceived, Sent: after.NetSent}
	}
	return u
}

func (p *program) showTop(format string, out []used) error {
	if forPrograms(format) {
		all := make([]output.Metrics, len(out))
		for i := range out {
			all[i] = printedMetrics(&out[i])
		}
		return printList(p, format, all)
	}
	if len(out) == 0 {
		p.note("No machine runs.")
		return nil
	}
	rows := make([][]string, len(out))
	for i, u := range out {
		received, sent := textout.None, textout.None
		if u.Net != nil {
			received, sent = textout.Size(int64(u.Net.ReceivedPerSecond))+"/s", textout.Size(int64(u.Net.SentPerSecond))+"/s"
		}
		rows[i] = []string{
			u.Namespace, u.Name, fmt.Sprintf("%.0f%%", 100*u.CPU), textout.Size(u.Memory),
			textout.Size(int64(u.DiskReadPerSecond)) + "/s", textout.Size(int64(u.DiskWrittenPerSecond)) + "/s", received, sent,
		}
	}
	return textout.Table(p.stdout, []string{"NAMESPACE", "NAME", "CPU", "MEMORY", "READ", "WRITTEN", "RECEIVED", "SENT"}, rows)
}

func printedMetrics(u *used) output.Metrics {
	out := output.Metrics{
		ObjectMeta: named(u.Namespace, u.Name), Timestamp: metav1.NewTime(u.at), WindowSeconds: u.window.Seconds(),
		Usage: output.Usage{
			CPU: resource.NewScaledQuantity(int64(math.Round(u.CPU*1e9)), resource.Nano), Memory: output.Bytes(u.Memory),
			DiskReadPerSecond: rate(u.DiskReadPerSecond), DiskWrittenPerSecond: rate(u.DiskWrittenPerSecond),
		},
		CPUSeconds: u.CPUSeconds, DiskRead: output.Bytes(u.DiskRead), DiskWritten: output.Bytes(u.DiskWritten),
	}
	if n := u.Net; n != nil {
		out.Usage.NetReceivedPerSecond, out.Usage.NetSentPerSecond = rate(n.ReceivedPerSecond), rate(n.SentPerSecond)
		out.NetReceived, out.NetSent = output.Bytes(n.Received), output.Bytes(n.Sent)
	}
	return out
}
