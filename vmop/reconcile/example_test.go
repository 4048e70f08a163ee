package reconcile_test

import (
	"fmt"
	"log"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A driver carries plans out until there is nothing left to do. What the API server
// refuses is in the next snapshot, whose plan leaves it out, explains it in the status
// and says when it is tried again.
func Example() {
	found, err := spec.Load("hello.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: hello, namespace: demo, uid: u1, resourceVersion: "1"}
spec: {vm: {maximumCpus: 2, display: {spice: {generateSecret: false}}}}
`), spec.Options{Validate: true})
	if err != nil {
		log.Fatal(err)
	}
	s := machine.Snapshot{VM: found[0].VirtualMachine, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for {
		plan := machine.Decide(s)
		for _, a := range plan.Actions {
			if !execute(&s, a) {
				break
			}
		}
		if len(plan.Actions) > 0 { // done or refused: look again
			continue
		}
		for _, e := range plan.Events {
			fmt.Println(e)
		}
		fmt.Println("wait until", plan.Wake.Format(time.TimeOnly))
		return
	}
	// Output:
	// create ConfigMap hello
	// create PersistentVolumeClaim hello-runner-data
	// Warning QuotaExceeded: create PersistentVolumeClaim hello-runner-data: exceeded quota: disks; raise the quota or free some of it; it is tried again within half a minute
	// wait until 03:04:06
}

// execute is an API server that lets nobody make volume claims.
func execute(s *machine.Snapshot, a reconcile.Action) bool {
	fmt.Println(a.Target())
	if c, is := a.(reconcile.Create); is {
		if o, is := c.Object.(*corev1.ConfigMap); is {
			s.ConfigMap = o
		}
	}
	if a.Target().Kind != names.KindClaim {
		return true
	}
	s.Failures = append(s.Failures, reconcile.Failure{
		Target: a.Target(), Reason: string(metav1.StatusReasonForbidden), Message: "exceeded quota: disks", Count: 1, Last: s.Now,
	})
	return false
}
