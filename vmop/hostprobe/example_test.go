package hostprobe_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// What a machine's command line would be on this host. There is no output to
// compare, because it depends on the host.
func ExampleProbe() {
	result, err := hostprobe.Probe(context.Background(), hostprobe.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, note := range result.Notes {
		log.Println(note)
	}
	cmd, err := qemucmd.Build(qemucmd.Machine{
		Name:     "demo",
		UUID:     "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
		Memory:   qemucmd.Memory{Size: 1 << 30},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareUEFI, VarsPath: "/var/lib/demo/fw-vars.fd"},
		Monitor:  qemucmd.Socket{Path: "/run/demo/monitor.sock"},
	}, result.Host)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(cmd.Shell())
}
