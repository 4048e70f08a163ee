package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
)

func dataDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "data-dir", EnvVars: []string{"VMOP_DATA_DIR"}, Usage: "`DIR` in which machines have their disks (default: $XDG_DATA_HOME/vmop or ~/.local/share/vmop)"}
}

func (p *program) host(c *cli.Context) (*host.Host, error) {
	dir := c.String("data-dir")
	if dir == "" { // of commands that do not have the flag
		dir = p.getenv("VMOP_DATA_DIR")
	}
	h, err := host.Open(host.Options{DataDir: dir, Getenv: p.getenv})
	if err != nil {
		return nil, fmt.Errorf("%w with --data-dir", err)
	}
	return h, nil
}

// find returns the machine of a NAME argument: NAMESPACE/NAME, or a unique NAME.
func (p *program) find(c *cli.Context, arg string) (host.Machine, error) {
	_, m, err := p.lookUp(c, arg, (*host.Host).Find)
	return m, err
}

func (p *program) lookUp(c *cli.Context, arg string, find findBy) (*host.Host, host.Machine, error) {
	h, err := p.host(c)
	if err != nil {
		return nil, host.Machine{}, err
	}
	m, err := find(h, arg, c.String("namespace"))
	return h, m, p.seeList(c, h, arg, err)
}

func (p *program) findOne(c *cli.Context) (host.Machine, error) {
	_, m, err := p.named(c, (*host.Host).Find)
	return m, err
}

// findBy is a lookup of a machine by its name, such as (*host.Host).Find.
type findBy func(h *host.Host, name, namespace string) (host.Machine, error)

func (p *program) named(c *cli.Context, find findBy) (*host.Host, host.Machine, error) {
	name, err := oneName(c)
	if err != nil {
		return nil, host.Machine{}, err
	}
	return p.lookUp(c, name, find)
}

// seeList adds to the error about an unknown name how to list machines, and which one was probably
// meant.
func (p *program) seeList(c *cli.Context, h *host.Host, arg string, err error) error {
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	if near := nearMachine(c, h, arg); near != "" {
		err = fmt.Errorf("%w (did you mean %s?)", err, near)
	}
	return fmt.Errorf("%w; see %s, and --cluster for those of a cluster", err, p.hint(c, "list"))
}

// nearMachine returns the full name of the machine that was probably meant; "" for destructive
// commands: a typo must not lead to another machine.
func nearMachine(c *cli.Context, h *host.Host, arg string) string {
	if c.Command == nil || destructive[c.Command.Name] || destructiveActions[c.Command.Name+" "+c.Args().First()] {
		return ""
	}
	namespace, name, within := strings.Cut(arg, "/")
	if !within {
		namespace, name = c.String("namespace"), arg
	}
	machines, err := h.List(host.ListOptions{})
	if err != nil {
		return "" // that there is none of the name was found all the same
	}
	var names, all []string
	for i := range machines {
		m := &machines[i]
		if namespace == "" || m.Namespace == namespace {
			names = append(names, m.Name)
		}
		all = append(all, m.FullName())
	}
	// If machines in several namespaces have the name, the choice is ambiguous.
	if near := nearest(strings.ToLower(name), names); near != "" {
		if found, err := h.Find(near, namespace); err == nil {
			return found.FullName()
		}
		return ""
	}
	if within {
		return nearest(strings.ToLower(arg), all)
	}
	return ""
}

func oneName(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usagef(c, "want the NAME of one machine, and found %s", arguments(c.NArg()))
	}
	return c.Args().First(), nil
}

func machineFlags(flags ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` of the machine, which NAME can also say as NAMESPACE/NAME"},
		dataDirFlag(),
	}, flags...)
}

func arguments(n int) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "one argument"
	}
	return strconv.Itoa(n) + " arguments"
}
