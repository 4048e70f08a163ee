package deploytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
)

// Whoever makes a machine, and however, it has the operator's finalizer beside its own, once,
// where the operator has its rights; and who takes it away later has taken it away.
func TestFinalizerAtCreation(t *testing.T) {
	dir := t.TempDir()
	if err := overlay(dir, "namespace: held\nresources: [deploy/runner]\n"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "namespace", "held")
	defer kubectl(t, "delete", "namespace", "held")
	made := func(name, finalizers string) string {
		file := filepath.Join(dir, name+".yaml")
		text := "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: " + name + ", namespace: held, finalizers: " + finalizers +
			"}\nspec: {vm: {maximumCpus: 1, maximumRam: 1Gi, state: Running}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const of = "jsonpath={.metadata.finalizers}"
	tried := made("tried", "[]")
	if got := kubectl(t, "create", "--dry-run=server", "-f", tried, "-o", of); got != "" {
		t.Errorf("finalizers %s where the operator has no rights", got)
	}
	kubectl(t, "apply", "--warnings-as-errors", "-k", dir)
	// The API server sees the binding, and a policy that was created, a moment later.
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := kubectl(t, "create", "--dry-run=server", "-f", tried, "-o", of)
		if strings.Contains(got, names.FinalizerMachine) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("finalizers %s", got)
		}
	}
	for name, given := range map[string]string{"plain": "[]", "kept": "[example.com/kept]", "held": "[" + names.FinalizerMachine + "]", "both": "[example.com/kept, " + names.FinalizerMachine + "]"} {
		want := `["` + names.FinalizerMachine + `"]`
		if strings.Contains(given, "kept") {
			want = `["example.com/kept","` + names.FinalizerMachine + `"]`
		}
		file := made(name, given)
		for _, how := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}} {
			if got := kubectl(t, append(how, "--dry-run=server", "-f", file, "-o", of)...); got != want {
				t.Errorf("%s with %s: %s, want %s", how, given, got, want)
			}
		}
	}
	file := made("left", "[]")
	kubectl(t, "apply", "--server-side", "-f", file)
	kubectl(t, "patch", "vm", "-n", "held", "left", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if got := kubectl(t, "apply", "--server-side", "-f", file, "-o", of); got != "" {
		t.Errorf("finalizers %s", got)
	}
}

// Before Kubernetes 1.36 nothing of the operator needs what the API server does not know.
func TestClusterHasNoMutatingPolicy(t *testing.T) {
	for folder, want := range map[string]bool{deploy: true, deploy + "/cluster": false, deploy + "/namespaced": false, deploy + "/access": false} {
		if got := strings.Contains(kubectl(t, "kustomize", folder), "kind: MutatingAdmissionPolicy"); got != want {
			t.Errorf("%s has a MutatingAdmissionPolicy: %t", folder, got)
		}
	}
}
