package machinetest_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machine/machinetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// billed decides as vmop does, and notes on each new pod who pays for it.
func billed(s machine.Snapshot) reconcile.Plan {
	p := machine.Decide(s)
	for _, a := range p.Actions {
		c, is := a.(reconcile.Create)
		if !is {
			continue
		}
		if pod, is := c.Object.(*corev1.Pod); is {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "cloud.example.org/paid-by", s.VM.Namespace)
		}
	}
	return p
}

// A program that decides otherwise than vmop has a test like this one: whatever it adds,
// no disk gets a second writer by it, and no machine waits without a word.
func ExampleTestDecide() {
	var t *testing.T // the test's own
	if t != nil {
		machinetest.TestDecide(t, billed)
	}
}

// Of what becomes of a machine that is stopped before a node has taken it, this is what
// happens to its pod.
func ExamplePlay() {
	told, err := machinetest.Play(billed, `
		reconcile
		kubelet unschedulable
		reconcile
		person stops
		reconcile
	`)
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(told) {
		if strings.Contains(line, " Pod ") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// create Pod web
	// delete Pod web (uid-15, grace 930 s)
}

// What was added to a decision breaks no promise.
func TestBilledMachines(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	t.Cleanup(func() { _ = checks.Value.Set(before) })
	if err := checks.Value.Set("3"); err != nil { // it is machine.Decide that has to be looked at more often
		t.Fatal(err)
	}
	machinetest.TestDecide(t, billed)
}
