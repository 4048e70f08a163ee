// Command go-run runs a manifest's machine inside of this program: the engine
// that vmop-runner and vmop-cli use, embedded.
//
//	go run ./examples/go-run examples/hello/vm.yaml IMAGES DATA
//
// IMAGES is the image repository, DATA a directory for what must survive.
// Ctrl-C shuts the guest down.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	if len(args) != 3 {
		return runner.ExitUsage, errors.New("usage: go-run MANIFEST IMAGES DATA")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return runner.ExitStart, err
	}
	vms, err := vmop.Load(args[0], data)
	if err != nil || len(vms) != 1 {
		return runner.ExitStart, errors.Join(err, fmt.Errorf("%s: want one VirtualMachine, found %d", args[0], len(vms)))
	}
	runtimeDir, err := os.MkdirTemp("", "go-run")
	if err != nil {
		return runner.ExitStart, err
	}

	// The runner's configuration is made from the manifest and this host's directories.
	config, err := machineconfig.ForHost(vms[0], machineconfig.Host{
		DataDir: filepath.Join(args[2], vms[0].Name), RuntimeDir: runtimeDir, ImageRepository: args[1],
	})
	if err != nil {
		return runner.ExitStart, err
	}

	// QEMU's capabilities on this host.
	host, err := hostprobe.Probe(context.Background(), hostprobe.Options{})
	if err != nil {
		return runner.ExitStart, err
	}
	engine, err := runner.New(runner.Options{
		Config: config, Host: host.Host,
		Reporter: &runner.LogReporter{Out: os.Stdout},
	})
	if err != nil {
		return runner.ExitStart, err
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	defer context.AfterFunc(interrupted, engine.Stop)()

	outcome, err := engine.Run(context.Background())
	return outcome.ExitCode(), err
}
