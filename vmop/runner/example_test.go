package runner_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// An engine runs the machine of a manifest inside of the program, and says when the
// guest executes. The program runs it to its end.
func ExampleEngine() {
	ctx := context.Background()
	vm := spec.NewVirtualMachine("default", "web")
	vm.Spec.VM.MaximumCPUs = new(int32(2))
	vm.Spec.VM.Networks = []spec.Network{{User: &spec.UserNetwork{}}}
	config, err := machineconfig.ForHost(vm, machineconfig.Host{DataDir: "/srv/machines/web", RuntimeDir: "/run/machines/web"})
	if err != nil {
		log.Fatal(err) // what this host would have to provide
	}
	host, err := hostprobe.Probe(ctx, hostprobe.Options{})
	if err != nil {
		log.Fatal(err)
	}
	e, err := runner.New(runner.Options{Config: config, Host: host.Host, Reporter: &runner.LogReporter{Out: os.Stderr}})
	if err != nil {
		log.Fatal(err)
	}
	go func() { // ends with the machine, if not before
		if s, err := e.Wait(ctx, runner.PhaseBooting); err == nil {
			log.Printf("QEMU %s runs as process %d; its console is %s", s.QEMUVersion, s.QEMUPID, s.Socket(qemucmd.SocketConsole))
		}
	}()
	outcome, err := e.Run(ctx)
	if err != nil {
		log.Print(err)
	}
	os.Exit(outcome.ExitCode())
}

// New refuses what cannot run before anything is touched, each problem with the key of
// the configuration that it is about.
func ExampleNew() {
	config, warnings, err := runner.ReadConfig([]byte(`
"/Runner":
  dataDir: /srv/machines/web
  runtimeDir: /run/machines/web
  vm:
    name: web
    maximumCpus: 4
    maximumRam: 2 GiB
`))
	if err != nil {
		log.Fatal(err, warnings)
	}
	e, err := runner.New(runner.Options{Config: config})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.State().Name, "would be in", e.State().DataDir)

	config.Runner.VM.Firmware = "coreboot"
	_, err = runner.New(runner.Options{Config: config})
	fmt.Println(err)
	// Output:
	// web would be in /srv/machines/web
	// runner configuration of "web": vm.firmware: "coreboot" must be one of bios, uefi, uefi-4m, secure, secure-4m
}

func ExampleDefaultDirectories() {
	config, _, err := runner.ReadConfig([]byte(`{"/Runner": {vm: {name: web}}}`))
	if err != nil {
		log.Fatal(err)
	}
	environment := map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}
	d := runner.DefaultDirectories(&config, runner.Surroundings{
		Getenv: func(name string) string { return environment[name] }, UserName: "ann", Home: "/home/ann",
	})
	fmt.Println(d.Data)
	fmt.Println(d.Runtime)
	// Output:
	// /home/ann/.local/share/vmrunner/web
	// /run/user/1000/vmrunner/web
}
