package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// SuperviseIfAsked runs a machine and ends the process with the machine's exit code, if [Job.Start]
// or [Host.Start] has started this process for that: without a Supervisor in their options, they
// start the calling program again. Otherwise it returns at once. Such a program must call it first
// in main.
func SuperviseIfAsked() {
	if len(os.Args) != 2 || os.Args[1] != supervisorWord {
		return
	}
	outcome, err := Supervise(context.Background(), SuperviseOptions{Log: os.Stderr})
	switch {
	case errors.Is(err, ErrNotSupervisor):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(runner.ExitUsage)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(outcome.ExitCode())
}

// CreateFile creates the machine of a manifest file with a single manifest, see [Host.Create]. The
// error has the file and the line of each fault.
func (h *Host) CreateFile(file string, g Given) (Machine, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Machine{}, err
	}
	objects, err := spec.Load(file, data, spec.Options{Default: true, Validate: true})
	if err == nil && (len(objects) != 1 || objects[0].VirtualMachine == nil) {
		err = fmt.Errorf("%s: want one virtual machine, and found %d objects", file, len(objects))
	}
	if err != nil {
		return Machine{}, err
	}
	return h.Create(&objects[0], g)
}

// Start runs a created machine in a process of its own, with what it was given at its creation, and
// returns when its guest runs: [Host.Prepare] and [Job.Start] in one.
func (h *Host) Start(ctx context.Context, m Machine, o StartOptions) (Machine, error) {
	object, err := m.Object()
	if err != nil {
		return m, err
	}
	job, err := h.Prepare(ctx, &object, JobOptions{})
	if err != nil {
		return m, err
	}
	if _, err := job.Start(ctx, o); err != nil {
		return m, err
	}
	return h.Machine(m.Namespace, m.Name)
}
