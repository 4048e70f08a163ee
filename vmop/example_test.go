package vmop_test

import (
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// A manifest becomes a command line, wherever this runs.
func Example() {
	vms, err := vmop.Load("web.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata:
  name: web
spec:
  vm:
    machineUuid: 7a1c0e52-33a7-4f9e-9a52-0b8f6a1f2d3c
    firmware: bios
    maximumCpus: 4
    maximumRam: 2Gi
    networks:
    - user: {hostForwards: [{hostPort: 8080, guestPort: 80}]}
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 10Gi}}}
`))
	if err != nil {
		log.Fatal(err) // every problem, with its line
	}
	host := qemucmd.GenericHost() // or hostprobe's answer, to run it here
	out, err := vmop.Render(vms[0], vmop.RenderOptions{
		Host:  &host,
		Local: &vmop.Local{DataDir: "/srv/web", RuntimeDir: "/run/web"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, group := range []string{"name", "memory"} {
		for _, option := range out.Command.Group(group) {
			fmt.Println(option.Args())
		}
	}
	for _, f := range out.Command.Files {
		fmt.Println(f.Purpose, f.Path)
	}
	// Output:
	// [-name guest=web,debug-threads=on]
	// [-uuid 7a1c0e52-33a7-4f9e-9a52-0b8f6a1f2d3c]
	// [-object {"qom-type":"memory-backend-ram","id":"pc.ram","size":2147483648}]
	// [-m 2048]
	// disk /srv/web/system-disk.img
}

// What does a new version of a manifest do to the machine that runs?
func ExampleChanges() {
	const manifest = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm: {maximumCpus: 4, currentCpus: %d, maximumRam: %s}
`
	load := func(cpus int, ram string) *vmop.VirtualMachine {
		vms, err := vmop.Load("web.yaml", fmt.Appendf(nil, manifest, cpus, ram))
		if err != nil {
			log.Fatal(err)
		}
		return vms[0]
	}
	for _, c := range vmop.Changes(load(2, "2Gi"), load(4, "4Gi")) {
		fmt.Println(c)
	}
	// Output:
	// replace spec.vm.currentCpus: 2 -> 4 (live)
	// replace spec.vm.maximumRam: "2Gi" -> "4Gi" (restart)
}
