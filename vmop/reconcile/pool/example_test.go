package pool_test

import (
	"fmt"
	"log"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

func load(manifest string) (machines []spec.VirtualMachine, all []spec.VmPool) {
	objects, err := spec.Load("lab.yaml", []byte(manifest), spec.Options{Default: true, Validate: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			o.VirtualMachine.ResourceVersion = "42" // as the API server tells
			machines = append(machines, *o.VirtualMachine)
		} else {
			all = append(all, *o.VmPool)
		}
	}
	return machines, all
}

func ExampleAssign() {
	machines, all := load(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VmPool
metadata: {name: students, namespace: lab}
spec:
  retention: P1W
  permissions: [{role: student, may: [start, accessConsole]}]
---
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: desk-1, namespace: lab}
spec: {pools: [students], vm: {maximumCpus: 2}}
`)
	d := pool.Assign(pool.Request{
		Namespace: "lab", Pool: "students", User: pool.User{Name: "ann", Roles: []string{"student"}},
		Pools: all, Machines: machines, Now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	})
	patch, err := d.Update.Patch()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Machine, d.Start)
	fmt.Println(string(patch))
	// Output:
	// desk-1 true
	// {"metadata":{"resourceVersion":"42"},"status":{"assignment":{"pool":"students","user":"ann","lastUsed":"2026-03-01T09:00:00Z"}}}
}
