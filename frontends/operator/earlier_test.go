package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionsOf returns which fields of each condition somebody owns who wrote a status.
func conditionsOf(t *test, machine, manager string) map[string][]string {
	t.Helper()
	o, err := t.vms.Get(t.Context(), machine, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, m := range o.GetManagedFields() {
		var owned struct {
			Status struct {
				Conditions map[string]map[string]any `json:"f:conditions"`
			} `json:"f:status"`
		}
		if m.Manager != manager || m.Subresource != "status" {
			continue
		}
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &owned); err != nil {
			t.Fatal(err)
		}
		for key, fields := range owned.Status.Conditions {
			out[key] = nil
			for field := range fields {
				out[key] = append(out[key], field)
			}
		}
	}
	return out
}

// Machines whose conditions were written when each field of one had an owner of its own
// live on with definitions in which a condition has one: what was reported is believed,
// and what changes is written.
func TestConditionsOfEarlierDefinitions(tt *testing.T) {
	tt.Parallel()
	own := ownCluster(tt) // with the definitions
	t := newTestOn(tt, own)
	apply := func(file string) {
		t.Helper()
		if _, err := own.Kubectl(t.Context(), "apply", "--server-side", "-f", file); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
			t.Fatal(err)
		}
	}
	const ofMachines = "../../deploy/crds/vmoperator.jdrupes.org_vms.yaml"
	now, err := os.ReadFile(ofMachines)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(now), "\n"), func(l string) bool { return strings.TrimSpace(l) == "x-kubernetes-map-type: atomic" })
	apply(t.file(strings.Join(lines, "\n")))
	t.startKubelet()
	t.start(own.Kubeconfig())
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	authors := []string{names.OperatorStatusManager, names.RunnerStatusManager}
	for _, author := range authors {
		all := conditionsOf(t, "one", author)
		for key, fields := range all {
			if len(fields) < 2 {
				t.Fatalf("%s owns %v of %s with definitions of before", author, fields, key)
			}
		}
		if len(all) == 0 {
			t.Fatalf("%s owns no condition", author)
		}
	}

	apply(ofMachines)
	t.setState("one", spec.StateStopped)
	t.phase("one", spec.PhaseStopped)
	t.setState("one", spec.StateRunning)
	t.phase("one", spec.PhaseRunning)
	t.eventually("each condition has one owner", func() error {
		for _, author := range authors {
			all := conditionsOf(t, "one", author)
			if len(all) == 0 {
				return fmt.Errorf("%s owns none", author)
			}
			for key, fields := range all {
				if len(fields) > 0 {
					return fmt.Errorf("%s owns %v of %s", author, fields, key)
				}
			}
		}
		return nil
	})
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range vm.Status.Conditions {
		if seen[c.Type] {
			t.Errorf("%s is there twice", c.Type)
		}
		seen[c.Type] = true
	}
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionRunning); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("what the runner reported: %+v", c)
	}
}
