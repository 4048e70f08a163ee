//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// requested is what the pod of the machine asks for.
func requested(t *testing.T, name string) resource.Quantity {
	t.Helper()
	return resource.MustParse(kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.spec.containers[0].resources.requests."+name+"}"))
}

// awaitRequest waits until the pod asks for what it is to ask for.
func awaitRequest(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, "the pod's request of "+name, func() error {
		if got := requested(t, name); got.Cmp(resource.MustParse(want)) != 0 {
			return fmt.Errorf("it is %s instead of %s", got.String(), want)
		}
		return nil
	})
}

// applied waits until the specification of the machine is applied.
func applied(t *testing.T) {
	t.Helper()
	eventually(t, "the specification is applied", func() error {
		out := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o",
			`jsonpath={.metadata.generation} {range .status.conditions[?(@.type=="ConfigurationApplied")]}{.observedGeneration} {.status} {.message}{end}`)
		f := strings.Fields(out)
		if len(f) < 3 || f[0] != f[1] || f[2] != "True" {
			return errors.New(out)
		}
		return nil
	})
}

// A machine that grows while it runs has asked its node for what its guest gets;
// one for which the node is too small keeps what it has and says so; and what a
// guest gives back its pod does not ask for any more.
func TestResize(t *testing.T) {
	explainOnFailure(t)
	install(t)
	change := func(fields string) {
		t.Helper()
		kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", `{"spec":{"vm":`+fields+`}}`)
	}
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, strings.NewReplacer("maximumCpus: 2", "maximumCpus: 12", "maximumRam: 256Mi", "maximumRam: 512Mi\n    currentRam: 256Mi").Replace(string(manifest)))
	awaitCondition(t, "PodReady")
	awaitCondition(t, "Running")
	c := console(t, "tiny")
	applied(t)
	awaitField(t, "ram", "256Mi")
	pod := kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid}")
	cpu, memory := requested(t, "cpu"), requested(t, "memory")
	if cpu.Cmp(resource.MustParse("500m")) != 0 {
		t.Errorf("one CPU asks for %s", cpu.String())
	}
	grown := memory.DeepCopy()
	grown.Add(*resource.NewQuantity((512<<20)*4/5-(256<<20)*4/5, resource.BinarySI)) // an overcommit of 1.25

	change(`{"currentCpus":2,"currentRam":"512Mi"}`)
	if _, err := c.Expect(withPatience(t), "cpu 1 online"); err != nil {
		t.Error(err)
	}
	awaitField(t, "ram", "512Mi")
	awaitField(t, "cpus", "2")
	applied(t)
	awaitRequest(t, "cpu", "1")
	eventually(t, "the pod asks for more memory", func() error {
		if got := requested(t, "memory"); got.Value()-grown.Value() > 1 || grown.Value()-got.Value() > 1 {
			return fmt.Errorf("it asks for %s instead of %s", got.String(), grown.String())
		}
		return nil
	})

	// No node of two processors has room for twelve.
	change(`{"currentCpus":12}`)
	eventually(t, "the machine says that its node is too small", func() error {
		out := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", `jsonpath={.status.cpus} {range .status.conditions[?(@.type=="ConfigurationApplied")]}{.reason} {.message}{end}`)
		if !strings.HasPrefix(out, "2 ResizeInfeasible ") || !strings.Contains(out, "can never give pod tiny room for 12 CPUs") {
			return errors.New(out)
		}
		return nil
	})
	eventually(t, "an event says what its guest keeps", func() error {
		out := kubectl(t, "get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(out, "the guest keeps 2 CPUs") {
			return errors.New(out)
		}
		return nil
	})
	if got := say(t, c, "cpus"); !strings.Contains(got, "online 0-1") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	t.Logf("what does not fit:\n%s", kubectl(t, "describe", "vm", "-n", namespace, "tiny"))

	change(`{"currentCpus":2,"currentRam":"256Mi"}`)
	awaitField(t, "ram", "256Mi")
	awaitRequest(t, "cpu", "1")
	awaitRequest(t, "memory", memory.String())
	applied(t)
	if now := kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.metadata.uid}"); now != pod {
		t.Error("the pod is another one")
	}
	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	gone(t, "pod/tiny")
}
