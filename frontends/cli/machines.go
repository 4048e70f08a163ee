package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/runner"
)

// machine is a machine of this host.
type machine struct {
	directories
	Namespace, Name string
	// State is what its runner last wrote.
	State runner.State
	// Runner and QEMU are the processes that have it; 0 if there is none.
	Runner, QEMU int
	Status       status
}

// status says what a machine is doing, from the user's point of view.
type status string

// The statuses that a machine on one host can have, beside the runner's phases.
const (
	statusRunning  status = "Running"
	statusPaused   status = "Paused" // the processors stand still
	statusStopped  status = "Stopped"
	statusFailed   status = "Failed"                // it could not be started, or crashed
	statusDied     status = "Stopped (runner died)" // runner and QEMU were killed
	statusOrphaned status = "Orphaned"              // the guest runs without its runner
)

// running says whether the guest may execute.
func (m *machine) running() bool { return m.Runner != 0 || m.QEMU != 0 }

// judge decides the status: the processes that hold the machine's lock say
// whether it runs, the state file only how it is called.
func judge(s runner.State, holders []runner.Holder) (st status, runnerPID, qemuPID int) {
	for _, h := range holders {
		if h.IsQEMU() {
			qemuPID = h.PID
		} else {
			runnerPID = h.PID
		}
	}
	switch {
	case runnerPID != 0 && s.RunnerPID != runnerPID:
		st = status(runner.PhaseInitializing) // it has not written its state yet
	case runnerPID != 0 && s.Phase == runner.PhaseBooting && s.Paused:
		st = statusPaused
	case runnerPID != 0 && s.Phase == runner.PhaseBooting:
		st = statusRunning
	case runnerPID != 0:
		st = status(s.Phase)
	case qemuPID != 0:
		st = statusOrphaned
	case s.Phase != runner.PhaseStopped:
		st = statusDied
	case s.Outcome != nil && (s.Outcome.ExitCode() == runner.ExitStart || s.Outcome.ExitCode() == runner.ExitFailure):
		st = statusFailed
	default:
		st = statusStopped
	}
	return st, runnerPID, qemuPID
}

// errNoMachine says that this host has no machine of a name.
var errNoMachine = errors.New("no such machine")

// scan finds the machines of this host, in the order of their names; with
// leftovers also those of which nothing but disks is left.
func (p *program) scan(c *cli.Context, leftovers bool) ([]machine, error) {
	root, err := p.dataRoot(c)
	if err != nil {
		return nil, err
	}
	var out []machine
	namespaces, err := subdirectories(filepath.Join(root, machinesName))
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		names, err := subdirectories(filepath.Join(root, machinesName, namespace))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			m, err := p.readMachine(c, namespace, name)
			switch {
			case errors.Is(err, errNoMachine) && !leftovers:
			case err != nil && !errors.Is(err, errNoMachine):
				return nil, err
			default:
				out = append(out, m)
			}
		}
	}
	return out, nil
}

func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for machines: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// readMachine finds out about one machine.
func (p *program) readMachine(c *cli.Context, namespace, name string) (machine, error) {
	m := machine{Namespace: namespaceOr(namespace), Name: name}
	var err error
	if m.directories, err = p.machineDirectories(c, namespace, name); err != nil {
		return m, err
	}
	holders, err := runner.Holders(m.machine)
	if err != nil {
		return m, err
	}
	m.State, err = runner.ReadState(m.stateFile())
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(holders) == 0:
		return m, fmt.Errorf("%s: %w", fullName(namespace, name), errNoMachine)
	case errors.Is(err, fs.ErrNotExist): // it is just being started
	case err != nil:
		// One broken file must not hide the other machines.
		m.State = runner.State{Message: err.Error()}
	}
	m.Status, m.Runner, m.QEMU = judge(m.State, holders)
	return m, nil
}

// find is the machine that a NAME argument means: NAMESPACE/NAME, or NAME if
// only one machine is called so.
func (p *program) find(c *cli.Context, arg string) (machine, error) {
	return p.findAmong(c, arg, false)
}

// findAmong is find, with leftovers also among what is left of deleted machines.
func (p *program) findAmong(c *cli.Context, arg string, leftovers bool) (machine, error) {
	namespace, name := c.String("namespace"), arg
	if n, rest, ok := strings.Cut(arg, "/"); ok {
		namespace, name = n, rest
	}
	all, err := p.scan(c, leftovers)
	if err != nil {
		return machine{}, err
	}
	var found []machine
	var names []string
	for _, m := range all {
		if m.Name == name && (namespace == "" || m.Namespace == namespace) {
			found = append(found, m)
			names = append(names, fullName(m.Namespace, m.Name))
		}
	}
	switch len(found) {
	case 0:
		return machine{}, fmt.Errorf("%s: %w; see vmop-cli list", arg, errNoMachine)
	case 1:
		return found[0], nil
	}
	return machine{}, fmt.Errorf("%s: there are %s: name one of them", arg, strings.Join(names, " and "))
}

// oneName is the NAME argument of a command that takes one.
func oneName(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usagef(c, "want the NAME of one machine, and found %d arguments", c.NArg())
	}
	return c.Args().First(), nil
}

// machineFlags are those of commands that take the NAME of a machine.
func machineFlags(flags ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` of the machine, which NAME can also say as NAMESPACE/NAME"},
		dataDirFlag(),
	}, flags...)
}
