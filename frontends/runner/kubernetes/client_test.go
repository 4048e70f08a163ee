package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
)

// cluster is a real API server with the definitions, a machine,
// and the rights that deploy/ gives to runners.
func cluster(t *testing.T) (*controlplane.ControlPlane, func(args ...string) string) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cp.Kubectl(context.WithoutCancel(t.Context()), args...)
		if err != nil {
			t.Fatal(out, err)
		}
		return strings.TrimSpace(out)
	}
	kubectl("apply", "-k", "../../../deploy/access")
	kubectl("apply", "-k", "../../../deploy/definitions")
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

	kubectl("apply", "-k", "../../../deploy/runner")
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(manifest, []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {namespace: default, name: web}
spec: {vm: {maximumCpus: 2}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "-f", manifest)
	return cp, kubectl
}

// asPod is the runner of a pod, as the API server knows it by its token.
func asPod(name string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:default:" + names.ServiceAccount,
		Extra: map[string][]string{
			"authentication.kubernetes.io/pod-name": {name}, "authentication.kubernetes.io/pod-uid": {"uid-of-" + name},
		},
	}
}

// The runner's rights suffice, its part of the status is what it says and nothing
// else, events come once, and another machine of the name is not touched.
func TestReportOnARealAPI(t *testing.T) {
	cp, kubectl := cluster(t)
	config := cp.Config()
	config.Impersonate = asPod("web")
	client, err := NewClient(config, "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	var log lines
	r := NewReporter(client, log.log)
	now := time.Now()
	state := runner.State{
		Phase: runner.PhaseBooting, CPUs: 2, RAM: 3 << 29, Generation: 1, RunnerVersion: "v1", QEMUVersion: "7.2.22",
		MachineType: "pc-q35-7.2", Accelerator: "tcg", ConsoleClient: "10.0.0.9", DisplayPasswordSerial: -1, GuestPanics: 2,
		Guest: runner.Guest{
			// A DEL, and a key that is longer than YAML's: a guest says what it likes.
			OSInfo:     json.RawMessage("{\"id\":\"debian\",\"pretty-name\":\"Debian\x7f\u0085\",\"" + strings.Repeat("k", 2000) + "\":{},\"name\":[1]}"),
			HostName:   "web",
			Interfaces: []runner.GuestInterface{{Name: "lo"}, {Name: "eth0", MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.0.5/24"}}},
		},
		Login:      runner.Login{User: "alice"},
		Conditions: []live.Condition{{Type: live.GuestExecuting, Status: live.True, Reason: live.ReasonRunning}},
		StatusConditions: []live.StatusCondition{{
			Type: live.Running, Status: live.True, Reason: live.ReasonVMStarted, Message: "the guest executes",
			ObservedGeneration: 1, LastTransitionTime: now,
		}},
	}
	r.State(state)
	r.Message(runner.Message{Time: now, Event: &live.Event{Action: live.ActionStatus, Reason: live.ReasonVMStarted, Note: "the guest executes"}})
	r.Message(runner.Message{Time: now, Event: &live.Event{Action: live.ActionConsole, Reason: "Connection from 10.0.0.9"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
	if log.count() > 0 {
		t.Errorf("log %v", log.all)
	}
	got := kubectl("get", "vm", "web", "-o", `jsonpath={.status.cpus} {.status.ram} {.status.runnerVersion} {.status.versions.qemu} `+
		`{.status.machineType} {.status.accelerator} {.status.consoleClient} {.status.loggedInUser} {.status.displayPasswordSerial} {.status.guestPanics} {.status.osinfo} `+
		`{.status.hostName} {.status.interfaces} {.status.conditions[?(@.type=="Running")].reason} {.status.conditions[?(@.type=="Booted")].reason} {.status.conditions[?(@.type=="GuestExecuting")].status}`)
	want := `2 1536Mi v1 7.2.22 pc-q35-7.2 tcg 10.0.0.9 alice -1 2 {"id":"debian","pretty-name":"Debian` + "\x7f\u0085" + `"} web [{"ipAddresses":["10.0.0.5/24"],"mac":"52:54:00:00:00:01","name":"eth0"}] VmStarted Creation True`
	if got != want {
		t.Errorf("status\n got %s\nwant %s", got, want)
	}
	// The API server has some of its own there.
	events := kubectl("get", "events.events.k8s.io", "-o", `jsonpath={range .items[?(@.regarding.kind=="VirtualMachine")]}{.reason}|{.action}|{.regarding.name}|{.reportingController}{"\n"}{end}`)
	if want := "VmStarted|StatusUpdate|web|vmoperator.jdrupes.org/vm-runner\nConnection from 10.0.0.9|ConsoleConnectionUpdate|web|vmoperator.jdrupes.org/vm-runner"; events != want {
		t.Errorf("events\n%s", events)
	}

	m, err := client.Machine(ctx)
	if err != nil || m.UID == "" || len(m.Conditions) < 5 {
		t.Errorf("machine %+v, %v", m, err)
	}
	e := newEvent(live.Event{Action: live.ActionStatus, Reason: "Again"}, now, 1)
	for range 2 {
		if err := client.CreateEvent(ctx, m.UID, e); err != nil {
			t.Error(err)
		}
	}
	// The same again is no write.
	version := kubectl("get", "vm", "web", "-o", "jsonpath={.metadata.resourceVersion}")
	part, _ := vmstatus.Of(&state, vmstatus.NewTransitions(m.Conditions), now.Add(time.Hour))
	if err := client.ApplyStatus(ctx, Machine{UID: m.UID}, &part); err != nil {
		t.Error(err)
	}
	if v := kubectl("get", "vm", "web", "-o", "jsonpath={.metadata.resourceVersion}"); v != version {
		t.Errorf("the same status made version %s of %s", v, version)
	}

	if err := client.ApplyStatus(ctx, Machine{UID: "00000000-0000-0000-0000-000000000001"}, &part); !errors.Is(err, ErrGone) {
		t.Errorf("another machine of the name: error %v", err)
	}
	if err := client.ApplyStatus(ctx, Machine{UID: m.UID, ResourceVersion: "1"}, &part); !errors.Is(err, ErrConflict) {
		t.Errorf("an old version: error %v", err)
	}
	other, err := NewClient(config, "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Machine(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("no machine: error %v", err)
	}
	if err := other.ApplyStatus(ctx, Machine{UID: "1"}, &part); !errors.Is(err, ErrGone) {
		t.Errorf("no machine: error %v", err)
	}
}
