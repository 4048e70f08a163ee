package machine_test

import (
	"fmt"
	"log"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

func ExampleObjects() {
	all, err := machine.Objects(fixture.WebServer(), objects.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range all {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	}
	// Output:
	// Secret web-display-secret
	// ConfigMap web
	// PersistentVolumeClaim web-runner-data
	// PersistentVolumeClaim web-system-disk
	// Pod web
}

// A machine that was just created needs its objects first.
func ExampleDecide() {
	found, err := spec.Load("hello.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: hello, namespace: demo}
spec:
  vm:
    state: Running
    maximumCpus: 2
`), spec.Options{Validate: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := machine.Decide(machine.Snapshot{
		VM:       found[0].VirtualMachine,
		Now:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Password: "from a random source",
	})
	for _, a := range plan.Actions {
		fmt.Println(a.Target())
	}
	// Output:
	// patch VirtualMachine hello
	// create Secret hello-display-secret
	// create ConfigMap hello
	// create PersistentVolumeClaim hello-runner-data
}
