package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) renameCommand() *cli.Command {
	return &cli.Command{
		Name:      "rename",
		Usage:     "give a machine of this host another name",
		ArgsUsage: "NAME NEW",
		Description: "Renames a machine that does not run. Its guest finds what it knew: the UUID, the MAC\n" +
			"addresses and cloud-init's instance-id stay; the host name follows the name where\n" +
			"cloud-init sets it. Snapshots stay with the machine.\n\n" +
			"Example:\n" +
			"  vmop-cli rename web shop",
		Flags:  machineFlags(),
		Action: p.rename,
	}
}

func (p *program) rename(c *cli.Context) error {
	h, m, namespace, name, err := p.twoNames(c)
	if err != nil {
		return err
	}
	renamed, err := h.Rename(m, namespace, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s is %s now.\n", m.FullName(), renamed.FullName())
	return nil
}

// twoNames returns an existing machine and the name of a new one.
func (p *program) twoNames(c *cli.Context) (h *host.Host, m host.Machine, namespace, name string, err error) {
	if c.NArg() != 2 {
		return nil, m, "", "", usagef(c, "want the NAME of a machine and its NEW name, and found %s", arguments(c.NArg()))
	}
	if h, err = p.host(c); err != nil {
		return nil, m, "", "", err
	}
	if m, err = p.find(c, c.Args().First()); err != nil {
		return nil, m, "", "", err
	}
	namespace, name, ok := strings.Cut(c.Args().Get(1), "/")
	if !ok {
		namespace, name = m.Namespace, c.Args().Get(1)
	}
	return h, m, namespace, name, nil
}

func (p *program) cloneCommand() *cli.Command {
	return &cli.Command{
		Name:      "clone",
		Usage:     "make another machine of one of this host",
		ArgsUsage: "NAME NEW",
		Description: "Copies a machine: its disks, wherever they are, into the new one's directory, its UEFI\n" +
			"variables and the state of its TPM. A file system that shares blocks (Btrfs, XFS) needs\n" +
			"no room for those of a machine that does not run; one that runs is copied as by\n" +
			"vmop-cli snapshot create. The clone has a UUID, MAC addresses and an\n" +
			"instance-id for cloud-init of its own; what the guest wrote down of itself it has too,\n" +
			"such as SSH host keys where cloud-init does not make new ones.\n\n" +
			"Example:\n" +
			"  vmop-cli clone web web2",
		Flags:  machineFlags(),
		Action: p.clone,
	}
}

func (p *program) clone(c *cli.Context) error {
	h, m, namespace, name, err := p.twoNames(c)
	if err != nil {
		return err
	}
	var made host.Machine
	var how host.Consistency
	err = p.copying(c, "copying the disks of "+m.FullName(), func(ctx context.Context, o host.CopyOptions) (err error) {
		o.Copied = func(is host.Consistency) { how = is }
		made, err = h.Clone(ctx, m, namespace, name, o)
		return err
	})
	if err != nil {
		return err
	}
	p.noteConsistency("clone", how)
	if o, err := made.Object(); err == nil {
		for _, n := range o.VirtualMachine.Spec.VM.Networks {
			if n.User != nil && len(n.User.HostForwards) > 0 {
				p.note("The clone forwards the same ports of this host: change them (%s) to run both at once.", p.hint(c, "edit", made.FullName()))
				break
			}
		}
	}
	fmt.Fprintf(p.stdout, "%s is a clone of %s. Start it with: %s\n", made.FullName(), m.FullName(), p.hint(c, "start", made.FullName()))
	return nil
}

func (p *program) copying(c *cli.Context, what string, do func(context.Context, host.CopyOptions) error) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	g := p.begin(what)
	err := do(ctx, host.CopyOptions{Progress: func(done, total int64) {
		g.set(fmt.Sprintf("%s: %s of %s", what, textout.Size(done), textout.Size(total)))
	}})
	g.end()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: nothing is left of it", err)
	}
	return err
}

func (p *program) noteConsistency(copied string, how host.Consistency) {
	switch {
	case how.Frozen:
		p.note("The machine ran on; its file systems were frozen at the %s's moment.", copied)
	case how.Running:
		p.note("The machine ran on; its disks are in the %s as after a power cut, because %s.", copied, how.Unfrozen)
	}
}
