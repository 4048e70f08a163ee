package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) snapshotCommand() *cli.Command {
	return &cli.Command{
		Name:      "snapshot",
		Usage:     "keep a machine of this host as it is, and go back to that",
		ArgsUsage: "create|list|restore|delete NAME [SNAPSHOT]",
		Description: "A snapshot has a machine's disks, UEFI variables, TPM state and manifest, as copies: a\n" +
			"file system that shares blocks (Btrfs, XFS) needs no room for those. A machine that\n" +
			"runs goes on, is paused for the moment that is kept, and writes to overlays until its\n" +
			"disks are copied. If it has the guest agent, its file systems are frozen for that\n" +
			"moment; otherwise they are in the snapshot as after a power cut. Its memory is not\n" +
			"kept. create calls the snapshot by the time if no name is given.\n\n" +
			"restore makes a machine that does not run what it was. What it is now is kept as another snapshot\n" +
			"first, unless --discard says that it may be lost. A disk that was given by --disk gets\n" +
			"an image in the machine's directory then: what was given is not touched.\n\n" +
			"Examples:\n" +
			"  vmop-cli snapshot create web before-upgrade\n" +
			"  vmop-cli snapshot list web\n" +
			"  vmop-cli snapshot restore web before-upgrade\n" +
			"  vmop-cli snapshot delete web before-upgrade",
		Flags: machineFlags(
			&cli.BoolFlag{Name: "discard", Usage: "restore: do not keep the machine as it is now; that is lost", DisableDefaultText: true},
			outputFlag("list", formatTable),
		),
		Action: p.snapshot,
	}
}

func (p *program) snapshot(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef(c, "want create, list, restore or delete, and the NAME of a machine, and found %s", arguments(len(args)))
	}
	action, args := args[0], args[1:]
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	switch {
	case action != "create" && action != "list" && action != "restore" && action != "delete":
		return usagef(c, "%q: want create, list, restore or delete", action)
	case c.Bool("discard") && action != "restore":
		return usagef(c, "--discard is for restore")
	case c.IsSet("output") && action != "list":
		return usagef(c, "--output is for list")
	case len(args) > 2 || len(args) == 2 && action == "list":
		return usagef(c, "%s: found %q, which is too much", action, args[len(args)-1])
	case len(args) < 2 && (action == "restore" || action == "delete"):
		return usagef(c, "%s: want the name of a SNAPSHOT; see %s", action, p.hint(c, "snapshot", "list", args[0]))
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	m, err := p.find(c, args[0])
	if err != nil {
		return err
	}
	name := now().Format("20060102-150405")
	if len(args) == 2 {
		name = args[1]
	}
	switch action {
	case "create":
		return p.createSnapshot(c, h, m, name)
	case "restore":
		return p.restoreSnapshot(c, h, m, name)
	case "delete":
		if err := m.DeleteSnapshot(name); err != nil {
			return p.seeSnapshots(&m, err)
		}
		fmt.Fprintf(p.stdout, "Snapshot %s of %s is deleted.\n", name, m.FullName())
		return nil
	}
	return p.listSnapshots(&m, format)
}

// now is the local time, for names that people read.
func now() time.Time { return time.Now() }

func (p *program) createSnapshot(c *cli.Context, h *host.Host, m host.Machine, name string) error {
	var s host.Snapshot
	err := p.copying(c, "copying the disks of "+m.FullName(), func(ctx context.Context, o host.CopyOptions) (err error) {
		s, err = h.CreateSnapshot(ctx, m, name, o)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Snapshot %s of %s is made, and takes %s.\n", s.Name, m.FullName(), textout.InWords(s.Allocated))
	p.noteConsistency("snapshot", host.Consistency{Running: s.Running, Frozen: s.Frozen, Unfrozen: s.Unfrozen})
	return nil
}

func (p *program) restoreSnapshot(c *cli.Context, h *host.Host, m host.Machine, name string) error {
	o := host.RestoreOptions{}
	if !c.Bool("discard") {
		o.Keep = "before-restore-" + now().Format("20060102-150405")
	}
	err := p.copying(c, "copying the disks of "+m.FullName(), func(ctx context.Context, copies host.CopyOptions) error {
		o.CopyOptions = copies
		return h.RestoreSnapshot(ctx, m, name, o)
	})
	if err != nil {
		return p.seeSnapshots(&m, err)
	}
	if o.Keep != "" {
		p.note("What it was until now is snapshot %s.", o.Keep)
	}
	fmt.Fprintf(p.stdout, "%s is what it was in snapshot %s.\n", m.FullName(), name)
	return nil
}

func (p *program) seeSnapshots(m *host.Machine, err error) error {
	if !errors.Is(err, host.ErrNoSnapshot) {
		return err
	}
	all, lerr := m.Snapshots()
	if lerr != nil || len(all) == 0 {
		return err
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return fmt.Errorf("%w: it has %s", err, strings.Join(names, ", "))
}

func (p *program) listSnapshots(m *host.Machine, format string) error {
	all, err := m.Snapshots()
	if err != nil {
		return err
	}
	if forPrograms(format) {
		return printList(p, format, printedSnapshots(m, all))
	}
	if len(all) == 0 {
		p.note("%s has no snapshots.", m.FullName())
		return nil
	}
	at := now()
	rows := make([][]string, len(all))
	for i, s := range all {
		var disks []string
		for _, d := range s.Disks {
			disks = append(disks, d.Name)
		}
		rows[i] = []string{s.Name, textout.Age(at, s.Created), textout.Size(s.Allocated), strings.Join(disks, ", ")}
	}
	return textout.Table(p.stdout, []string{"SNAPSHOT", "AGE", "SIZE", "DISKS"}, rows)
}
