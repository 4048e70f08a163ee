package crdtest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/spec"
)

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// columns splits a line of a table at two or more spaces.
func columns(line string) []string {
	var out []string
	for field := range strings.SplitSeq(line, "  ") {
		if field = strings.TrimSpace(field); field != "" {
			out = append(out, field)
		}
	}
	return out
}

func TestKubectlGetShowsTheColumns(t *testing.T) {
	client := newClient(t)
	namespace := newNamespace(t, client)
	newMachine(t, client, namespace, "shown")
	applyStatus(t, client, namespace, "shown", "vmop-operator", map[string]any{
		"phase": "Running", "nodeName": "node-1", "ipAddress": "10.244.1.7", "cpus": int64(2), "ram": "1Gi", "accelerator": "tcg",
		"restartAwaitingChanges": []any{
			map[string]any{"operation": "replace", "path": "spec.vm.firmware", "currentValue": "bios", "desiredValue": "uefi"},
		},
		"conditions": []any{
			condition(spec.ConditionAwaitingRestart, "True", spec.ReasonChangesPendingRestart),
			condition(spec.ConditionVmopAgentConnected, "True", spec.ReasonVmopAgentStarted),
			condition(spec.ConditionReady, "True", spec.ReasonRunning),
			condition(spec.ConditionRunnerUpToDate, "False", spec.ReasonOtherImage),
		},
	})
	applyStatus(t, client, namespace, "shown", "vmop-assignment", map[string]any{"assignment": map[string]any{"pool": "desks", "user": "ann"}})
	for _, c := range []struct {
		args      []string
		head, row []string
	}{
		{
			args: []string{"get", "vm"},
			head: []string{"NAME", "PHASE", "READY", "REASON", "NODE", "ADDRESS", "USER", "AGE"},
			row:  []string{"shown", "Running", "True", "Running", "node-1", "10.244.1.7", "ann"},
		},
		{
			args: []string{"get", "vms", "shown", "-o", "wide"},
			head: []string{"NAME", "PHASE", "READY", "REASON", "NODE", "ADDRESS", "USER", "CPUS", "MEMORY", "ACCELERATOR", "NEED RESTART", "UP TO DATE", "AGENT", "AGE", "MESSAGE"},
			row:  []string{"shown", "Running", "True", "Running", "node-1", "10.244.1.7", "ann", "2", "1Gi", "tcg", "True", "False", "True"},
		},
	} {
		out := kubectl(t, append([]string{"-n", namespace}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 2 {
			t.Fatalf("kubectl %v:\n%s", c.args, out)
		}
		row := columns(lines[1])
		if !slices.Equal(columns(lines[0]), c.head) || len(row) < len(c.row) || !slices.Equal(row[:len(c.row)], c.row) {
			t.Errorf("kubectl %v:\n%s", c.args, out)
		}
	}
	kubectl(t, "-n", namespace, "wait", "--for=condition=Ready", "vm/shown", "--timeout=60s")
	if out := kubectl(t, "-n", namespace, "describe", "vm", "shown"); !strings.Contains(out, "VmopAgentStarted") || !strings.Contains(out, "Maximum Cpus:") {
		t.Errorf("kubectl describe:\n%s", out)
	}
}

// Every field of the specification is explained, with the text of the Go type.
func TestKubectlExplainsTheFields(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// The schema is published a moment after the definition is established.
	err := until(ctx, func() error {
		out, err := cluster.Kubectl(ctx, "explain", "vm.spec.vm")
		for _, want := range []string{
			"KIND:       " + spec.KindVirtualMachine, "VERSION:    " + spec.Version,
			"currentCpus\t<integer>", "maximumRam\t<Object>", "enum: Stopped, Running",
		} {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("%q is not in:\n%s", want, out)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ field, want string }{
		{"vm", "VirtualMachine declares one virtual machine that runs in QEMU."},
		{"vm.spec", "guestShutdownStops chooses what a power-off from inside the guest means"},
		{"vm.spec.vm.disks.cdrom.image", "An empty string is an empty drive."},
		{"vm.spec.vm.display.vnc.port", "It is 5901 by default, unless unixSocket is true."},
		{"vm.spec.vm.display.vnc.unixSocket", "in place of a port"},
		{"vmpool.spec.retention", "retention is how long a machine stays assigned after its last use"},
	} {
		out := strings.Join(strings.Fields(kubectl(t, "explain", c.field)), " ")
		if !strings.Contains(out, c.want) {
			t.Errorf("kubectl explain %s: %s", c.field, out)
		}
	}
}

// Each folder of examples as somebody would try it, in a cluster that has nothing
// but the definitions.
func TestKubectlAppliesTheExamples(t *testing.T) {
	files, err := filepath.Glob(examples)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", examples, len(files), err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		folder := filepath.Dir(file)
		if tried[folder] {
			continue
		}
		tried[folder] = true
		for range 2 {
			out := kubectl(t, "apply", "--server-side", "--validate=strict", "-f", folder)
			if n := strings.Count(out, "serverside-applied"); n < 1 || n != strings.Count(out, "\n") {
				t.Errorf("kubectl apply -f %s:\n%s", folder, out)
			}
		}
		if out := kubectl(t, "diff", "--server-side", "-f", folder); out != "" {
			t.Errorf("%s: what was applied differs from what is stored:\n%s", folder, out)
		}
	}
}
