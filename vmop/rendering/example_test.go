package rendering_test

import (
	"fmt"
	"os"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/rendering"
)

// The runner's configuration of a machine, as it is in the ConfigMap.
func ExampleWrite() {
	vms, err := vmop.Load("web.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {namespace: lab, name: web}
spec: {cloudInit: {userData: {packages: [nginx]}}, vm: {maximumCpus: 1}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := vmop.Render(vms[0], vmop.RenderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	machines := []rendering.Machine{{Namespace: vms[0].Namespace, Name: vms[0].Name, Rendered: r}}
	if err := rendering.Write(os.Stdout, rendering.CloudInit, rendering.YAML, machines); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # meta-data
	// instance-id: lab.web
	// local-hostname: web
	// ---
	// # user-data
	// #cloud-config
	// packages:
	//   - nginx
	// ---
	// # no network-config
}
