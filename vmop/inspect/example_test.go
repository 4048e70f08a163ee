package inspect_test

import (
	"fmt"
	"os"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/inspect"
)

// What a machine has, beside what its manifest wants of it. The report of a machine of
// this host is that of inspect.Machine.
func ExampleReport_WriteText() {
	vms, err := vmop.Load("web.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {namespace: lab, name: web}
spec: {vm: {maximumCpus: 4, currentCpus: 2, maximumRam: 4Gi, currentRam: 2Gi}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := inspect.Report{
		Namespace: "lab", Name: "web", Status: host.StatusRunning,
		CPUs:   &inspect.CPUs{Plugged: 1, Possible: 4},
		Memory: &inspect.Memory{Actual: 2 << 30, Maximum: 4 << 30},
		Wanted: inspect.WantedOf(vms[0]),
	}
	if err := r.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Machine:   lab/web
	// UUID:      <none>
	// Status:    Running
	//
	// PROPERTY         ACTUAL   MANIFEST
	// Machine type     <none>   <none>
	// Accelerator      <none>   auto
	// CPUs             1        2
	// CPUs possible    4        4
	// Memory           2Gi      2Gi
	// Memory maximum   4Gi      4Gi
	// Display          <none>   spice
}
