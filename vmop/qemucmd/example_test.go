package qemucmd_test

import (
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// The smallest machine there is, with the reasons for its options.
func Example() {
	cmd, err := qemucmd.Build(qemucmd.Machine{
		Name:     "demo",
		UUID:     "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
		Memory:   qemucmd.Memory{Size: 1_000_000_000},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareBIOS},
		Monitor:  qemucmd.Socket{Path: "/run/demo/monitor.sock"},
	}, qemucmd.GenericHost())
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range cmd.Group("memory") {
		fmt.Println(o.Args(), "-", o.Why)
	}
	fmt.Println(cmd.MachineType, cmd.Accelerator, len(cmd.Args()))
	// Output:
	// [-object {"qom-type":"memory-backend-ram","id":"pc.ram","size":1000341504}] - the guest's memory
	// [-m 954] - in MiB; QEMU refuses to start if it differs from the backend's size, so both are rounded up to whole MiB
	// pc-q35-7.2 kvm 57
}

// All that is wrong is told at once, by field.
func ExampleProblems() {
	_, err := qemucmd.Build(qemucmd.Machine{
		Name:     "demo",
		UUID:     "not a UUID",
		CPU:      qemucmd.CPU{Maximum: 6, Sockets: 4},
		Memory:   qemucmd.Memory{Size: 1 << 30},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareBIOS},
		Monitor:  qemucmd.Socket{Path: "/run/demo/monitor.sock"},
	}, qemucmd.GenericHost())
	for _, p := range qemucmd.Problems(err) {
		fmt.Println(p.Field)
		fmt.Println("   ", p.Message)
	}
	// Output:
	// cpu.maximum
	//     6 does not agree with the topology 4 sockets, which makes 4 CPUs
	// uuid
	//     "not a UUID" must be a UUID such as 6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11
}

// A custom machine type: the standard without sound, with a watchdog.
func ExampleBuildTemplate() {
	cmd, err := qemucmd.BuildTemplate(qemucmd.Machine{
		Name:     "demo, the first",
		UUID:     "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
		Memory:   qemucmd.Memory{Size: 1 << 30},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareBIOS},
		Monitor:  qemucmd.Socket{Path: "/run/demo/monitor.sock"},
	}, qemucmd.GenericHost(), `
{{without "sound"}}
# a guest that hangs is reset
-device
i6300esb
-smbios
type=1,product={{opt .Machine.Name}}
`)
	if err != nil {
		log.Fatal(err)
	}
	args := cmd.Args()
	fmt.Printf("%q\n", args[len(args)-4:])
	// Output:
	// ["-device" "i6300esb" "-smbios" "type=1,product=demo,, the first"]
}

// An address for the first network of a machine that names none.
func ExampleStableMAC() {
	fmt.Println(qemucmd.StableMAC("7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01", 0))
	// Output: a6:ef:72:72:2b:77
}
