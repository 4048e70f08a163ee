package machineconfig_test

import (
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func ExampleDisks() {
	for _, d := range machineconfig.Disks(fixture.WebServer()) {
		fmt.Printf("%s: name %q, claim %q\n", d.Field(), d.Name, d.Claim)
	}
	// Output:
	// spec.vm.disks[0]: name "", claim ""
	// spec.vm.disks[1]: name "system-disk", claim "web-system-disk"
}

func ExampleForCluster() {
	config, err := machineconfig.ForCluster(fixture.WebServer(), machineconfig.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range config.Runner.VM.Drives {
		fmt.Println(d.Type, d.File+d.Resource)
	}
	// Output:
	// ide-cd /var/local/vmop-image-repository/debian.iso
	// raw /dev/system-disk
}

func ExampleForHost() {
	config, err := machineconfig.ForHost(fixture.WebServer(), machineconfig.Host{
		DataDir:         "/srv/web",
		RuntimeDir:      "/run/web",
		ImageRepository: "/srv/images",
		Disks:           map[string]string{"system": "/srv/images/web.qcow2"},
	})
	if err != nil {
		log.Fatal(err)
	}
	file, err := runnerconfig.Marshal(config) // for the runner's --config
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(file) > 0, config.Runner.VM.Display.SPICE.Socket)
	// Output: true /run/web/spice.sock
}
