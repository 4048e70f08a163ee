package runnerconfig_test

import (
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A configuration is read, completed, checked, and becomes the machine of a command
// line.
func Example() {
	config, warnings, err := runnerconfig.Parse([]byte(`
"/Runner":
  vm:
    name: web
    maximumCpus: 2
    maximumRam: 512 MiB
    network:
    - type: user
`))
	if err != nil {
		log.Fatal(err, warnings)
	}
	runnerconfig.Default(&config)
	if err := runnerconfig.Validate(&config); err != nil {
		log.Fatal(err)
	}
	machine, err := runnerconfig.Machine(&config, runnerconfig.Facts{
		DataDir: "/srv/machines/web", RuntimeDir: "/run/machines/web",
		UUID: "6b1b2f4c-5d0e-4c5e-9d1c-0f5f3d1d9a11",
	})
	if err != nil {
		log.Fatal(err)
	}
	command, err := qemucmd.Build(machine, qemucmd.GenericHost())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(machine.Name, "has a monitor at", command.Sockets[0].Path)
	// Output:
	// web has a monitor at /run/machines/web/monitor.sock
}

// Everything that is wrong is told at once, by the keys below "/Runner".
func ExampleValidate() {
	var config runnerconfig.Config
	config.Runner.VM.Name = "web"
	config.Runner.VM.Firmware = "coreboot"
	config.Runner.VM.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveCD, File: "/images/../../etc/passwd"}, {Type: "floppy"}}
	runnerconfig.Default(&config)
	fmt.Println(runnerconfig.Validate(&config))
	// Output:
	// vm.firmware: "coreboot" must be one of bios, uefi, uefi-4m, secure, secure-4m
	// vm.drives[1].type: "floppy" is unknown: want one of raw, ide-cd
}

func ExampleParseBytes() {
	for _, text := range []string{"4 GiB", "512M", "4 potatoes"} {
		b, err := runnerconfig.ParseBytes(text)
		fmt.Println(int64(b), err)
	}
	// Output:
	// 4294967296 <nil>
	// 512000000 <nil>
	// 0 "4 potatoes" has the unknown unit "potatoes": want kB, MB, GB, KiB, MiB, GiB, …
}
