package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "print what the runner of a machine says, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Prints the log of a machine that runs in the background, or of the machine's pod in a\n" +
			"cluster. That ends with the pod: what an earlier one said is gone, but why it ended is\n" +
			"in vmop-cli inspect and events.\n\n" +
			"Examples:\n" +
			"  vmop-cli logs hello -f\n" +
			"  vmop-cli logs --cluster web --tail 20",
		Flags: eitherFlags(machineFlags(
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the machine ends", DisableDefaultText: true},
			&cli.IntFlag{Name: "tail", Value: -1, Usage: "only the last `LINES`; -1 is all"},
			&cli.DurationFlag{Name: "since", Usage: "only what is younger than this `DURATION`, as in 10m", DefaultText: "all that is kept"},
		)...),
		Action: p.logs,
	}
}

func (p *program) logs(c *cli.Context) error {
	if since := c.Duration("since"); since < 0 {
		return usagef(c, "--since %v: want a time before now", since)
	}
	if !inCluster(c) {
		return p.logsHere(c)
	}
	client, namespace, name, err := p.clusterMachine(c)
	if err != nil {
		return err
	}
	timeout := requestTimeout
	if c.Bool("follow") {
		timeout = 0
	}
	ctx, cancel := bounded(c, timeout, "the API server did not answer")
	defer cancel()
	err = client.Log(ctx, namespace, name, cluster.LogOptions{Follow: c.Bool("follow"), Tail: c.Int("tail"), Since: c.Duration("since")}, p.stdout)
	if err != nil && c.Bool("follow") && errors.Is(ctx.Err(), context.Canceled) {
		return nil // the user has ended it
	}
	if !errors.Is(err, cluster.ErrNoPod) {
		return err
	}
	// A wrong name must be reported differently from a stopped machine.
	ctx, cancelSecond := bounded(c, requestTimeout, "the API server did not answer")
	defer cancelSecond()
	if _, merr := client.Machine(ctx, namespace, name); merr != nil {
		return merr
	}
	return err
}

func (p *program) logsHere(c *cli.Context) error {
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	if c.Bool("follow") { // whoever sees a line may interrupt
		var cancel context.CancelFunc
		ctx, cancel = bounded(c, 0, "")
		defer cancel()
	}
	f, lines, err := readLog(&m)
	if err != nil {
		return err
	}
	defer f.Close()
	if since := c.Duration("since"); since > 0 {
		lines = youngerThan(lines, time.Now().Add(-since))
	}
	if tail := c.Int("tail"); tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.stdout, textout.Printable(line.text)); err != nil {
			return err
		}
	}
	if !c.Bool("follow") {
		return nil
	}
	return p.followLog(ctx, c, &m, f)
}

type logLine struct {
	time time.Time // zero for a line without one
	text string
}

// readLog reads the log of a machine up to its end, and leaves the file open there.
func readLog(m *host.Machine) (*os.File, []logLine, error) {
	f, err := os.Open(m.LogFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no log: it was not run in the background", m.FullName())
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	var out []logLine
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		stamp, _, _ := strings.Cut(line, " ")
		t, _ := time.Parse(time.RFC3339Nano, stamp)
		out = append(out, logLine{time: t, text: line})
	}
	return f, out, nil
}

func youngerThan(lines []logLine, limit time.Time) []logLine {
	for i, line := range lines {
		if line.time.After(limit) {
			return lines[i:]
		}
	}
	return nil
}

// followLog prints new log lines until the machine has ended.
func (p *program) followLog(ctx context.Context, c *cli.Context, m *host.Machine, f *os.File) error {
	h, err := p.host(c)
	if err != nil {
		return err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	defer w.Close()
	if err := w.Add(f.Name()); err != nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := h.Wait(waiting, *m, host.ForStopped)
		ended <- err
	}()
	r := bufio.NewReader(f)
	for err == nil {
		if err = p.copyLog(r); err != nil {
			break
		}
		select {
		case <-w.Events:
		case err = <-w.Errors:
		case err = <-ended:
			cancel()
			if errors.Is(err, context.Canceled) {
				err = nil // the user has ended it
			}
			return errors.Join(err, p.copyLog(r))
		}
	}
	cancel()
	<-ended
	return err
}

func (p *program) copyLog(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			if _, werr := io.WriteString(p.stdout, textout.Printable(line)); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
