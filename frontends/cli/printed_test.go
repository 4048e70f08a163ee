package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// at is what stands at a path of JSON, such as .status.ram; [0] is the first of a list.
func at(value any, path string) any {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		if name == "[0]" {
			items, _ := value.([]any)
			if len(items) == 0 {
				return nil
			}
			value = items[0]
			continue
		}
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// What one program reads of a machine of a cluster, it reads of one of this host.
func TestOneProgramReadsHostAndCluster(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	h, err := host.Open(host.Options{DataDir: filepath.Join(dir, "vmop"), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := spec.Load("web.yaml", []byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web, namespace: shop, labels: {tier: front}}\nspec: {vm: {maximumCpus: 2, maximumRam: 64Mi, networks: [{user: {}}]}}\n"), spec.Options{Default: true, Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Create(&objects[0], host.Given{})
	if err != nil {
		t.Fatal(err)
	}
	m.Status, m.QEMU, m.Runner = host.StatusRunning, 7, 5
	m.State = runner.State{
		Phase: runner.PhaseBooting, Since: began, Started: &began, CPUs: 2, RAM: 48 << 20, MachineType: "pc-q35-7.2", Accelerator: "tcg", QEMUVersion: "7.2.22", RunnerVersion: "v1", UUID: "u",
		StatusConditions: []live.StatusCondition{{Type: live.Running, Status: live.True, Reason: live.ReasonVMStarted, LastTransitionTime: began}},
		Guest:            runner.Guest{HostName: "web", OSInfo: json.RawMessage(`{"pretty-name":"tiny"}`), Interfaces: []runner.GuestInterface{{Name: "eth0", MAC: "02:00:00:00:00:01", Addresses: []string{"10.0.2.15/24"}}}},
		Login:            runner.Login{User: "ann"}, ConsoleClient: "::1", DisplayPasswordSerial: 1,
	}
	var stderr bytes.Buffer
	p := &program{stderr: &stderr}
	ram, t0 := resource.MustParse("48Mi"), metav1.NewTime(began)
	vm := objects[0].VirtualMachine.DeepCopy()
	vm.CreationTimestamp = t0
	vm.Status = spec.VirtualMachineStatus{
		Phase: spec.PhaseRunning, Ready: true, CPUs: 2, RAM: &ram, MachineType: "pc-q35-7.2", Accelerator: "tcg", RunnerVersion: "v1", HostName: "web", LoggedInUser: "ann", ConsoleClient: "::1",
		DisplayPasswordSerial: 1, Versions: &spec.Versions{QEMU: "7.2.22"}, Interfaces: []spec.Interface{{Name: "eth0", MAC: "02:00:00:00:00:01", IPAddresses: []string{"10.0.2.15/24"}}},
		Stats: &spec.Stats{PhasesTransitions: []spec.PhaseTransition{{Phase: spec.PhaseRunning, Time: t0}}, LastStartTime: &t0},
		Conditions: []spec.Condition{
			{Type: "Ready", Status: "True", Reason: "Running", Message: "the guest executes", LastTransitionTime: t0},
			{Type: "Running", Status: "True", Reason: live.ReasonVMStarted, LastTransitionTime: t0},
		},
	}
	values := func(machine output.Machine) any {
		var text bytes.Buffer
		if err := printList(&program{stdout: &text}, formatJSON, []output.Machine{machine}); err != nil {
			t.Fatal(err)
		}
		var out output.Output
		if err := json.Unmarshal(text.Bytes(), &out); err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		var value any
		if err := json.Unmarshal(text.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	here, there := values(p.printedMachine(&m, true)), values(printedFromCluster(vm, nil))
	for _, path := range []string{
		".kind", ".items.[0].kind", ".items.[0].apiVersion", ".items.[0].metadata.name", ".items.[0].metadata.namespace", ".items.[0].metadata.labels.tier",
		".items.[0].spec.vm.maximumRam", ".items.[0].spec.vm.maximumCpus", ".items.[0].status.phase", ".items.[0].status.ready", ".items.[0].status.cpus", ".items.[0].status.ram",
		".items.[0].status.machineType", ".items.[0].status.accelerator", ".items.[0].status.versions.qemu", ".items.[0].status.runnerVersion", ".items.[0].status.hostName",
		".items.[0].status.interfaces.[0].ipAddresses.[0]", ".items.[0].status.loggedInUser", ".items.[0].status.consoleClient", ".items.[0].status.displayPasswordSerial",
		".items.[0].status.stats.lastStartTime", ".items.[0].status.stats.phasesTransitions.[0].phase", ".items.[0].status.stats.phasesTransitions.[0].time",
		".items.[0].status.conditions.[0].type", ".items.[0].status.conditions.[0].status", ".items.[0].status.conditions.[0].reason",
	} {
		if a, b := at(here, path), at(there, path); a == nil || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s is %v on this host, and %v in a cluster", path, a, b)
		}
	}
	for _, value := range []any{here, there} {
		if made, _ := at(value, ".items.[0].metadata.creationTimestamp").(string); made == "" {
			t.Error("nobody knows when it was made")
		}
	}
	// What the API does not have is in one place.
	machine, _ := at(here, ".items.[0]").(map[string]any)
	for name := range machine {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status", "observed"}, name) {
			t.Errorf("%s stands beside what the API has", name)
		}
	}
	if stderr.Len() > 0 {
		t.Error(stderr.String())
	}
	if _, err := os.Stat(m.Data); err != nil {
		t.Error(err)
	}
}
