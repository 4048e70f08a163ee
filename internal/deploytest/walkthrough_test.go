package deploytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/names"
)

// The way of docs/from-vm-operator.md, from VM-Operator's own definitions and what
// its deploy folder leads to, on an API server of its own: stored machines are what
// they were, also those that vmop's definitions refuse.
func TestTheWayFromVMOperator(t *testing.T) {
	ctx := t.Context()
	cp, err := controlplane.Start(ctx, controlplane.Options{Controllers: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	run := func(args ...string) string {
		t.Helper()
		out, err := cp.Kubectl(ctx, args...)
		if err != nil {
			t.Fatalf("kubectl %v: %v", args, err)
		}
		return out
	}
	testdata := filepath.Dir(filepath.Dir(former))
	run("apply", "-f", filepath.Join(testdata, "definitions.yaml"))
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	run("apply", "-f", former)
	run("apply", "-f", filepath.Join(testdata, "cluster", "machines.yaml"))
	storeForeign(t, cp)
	before := machinesOf(t, run("get", "vms", "-n", "qemu-vms", "-o", "json"))
	if len(before) != 4 {
		t.Fatalf("%d machines", len(before))
	}

	run("apply", "-k", filepath.Join(deploy, "access"))
	run("apply", "-k", filepath.Join(deploy, "definitions"))
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	run("scale", "-n", "qemu-vms", "deployment", "vm-operator", "--replicas=0")
	account := run("get", "serviceaccount", "-n", "qemu-vms", "vm-runner", "-o", "jsonpath={.metadata.uid}")
	mine := walkersKustomization(t)
	run("apply", "-k", mine)

	after := machinesOf(t, run("get", "vms", "-n", "qemu-vms", "-o", "json"))
	for name, was := range before {
		is, ok := after[name]
		if !ok || is.GetUID() != was.GetUID() {
			t.Errorf("machine %s is another one", name)
			continue
		}
		if lost := missing("spec", was.Object["spec"], is.Object["spec"]); len(lost) > 0 {
			t.Errorf("machine %s has lost %v", name, lost)
		}
	}
	t.Run("stored", func(t *testing.T) { checkForeign(t, cp) })

	// The operator's own accounts may do what it does in this namespace, and has
	// no rights of VM-Operator's.
	if out, err := cp.Kubectl(ctx, "auth", "can-i", "create", "pods", "-n", "qemu-vms", "--as=system:serviceaccount:qemu-vms:vmop-operator"); err != nil {
		t.Errorf("the operator may not make pods: %s, %v", out, err)
	}
	if out, err := cp.Kubectl(ctx, "auth", "can-i", "delete", "persistentvolumeclaims", "-n", "qemu-vms", "--as=system:serviceaccount:qemu-vms:vmop-operator"); err == nil {
		t.Errorf("the operator may delete claims: %s", out)
	}
	if out := run("get", "deployment", "-n", "qemu-vms", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.replicas} {end}"); out != "vm-operator=0 vmop-operator=1 " {
		t.Errorf("deployments: %s", out)
	}

	// The way back.
	for _, args := range commandsOf(t, "## Back") {
		for i, a := range args {
			if a == "my-vmop" {
				args[i] = mine
			}
		}
		run(args...)
	}
	if out := run("get", "deployment,role,rolebinding,serviceaccount,networkpolicy,configmap", "-n", "qemu-vms", "-l", "app.kubernetes.io/name=vmop-operator", "-o", "name"); out != "" {
		t.Errorf("of the operator there is still %s", out)
	}
	if out := run("get", "deployment", "-n", "qemu-vms", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.replicas} {end}"); out != "vm-operator=1 " {
		t.Errorf("deployments: %s", out)
	}
	// Another account of the name would end the tokens of machines that run.
	if out, err := cp.Kubectl(ctx, "get", "serviceaccount", "-n", "qemu-vms", "vm-runner", "-o", "jsonpath={.metadata.uid}"); err != nil || out != account {
		t.Errorf("the account of machines' pods was %s: %s, %v", account, out, err)
	}
	// VM-Operator can make pods for machines again.
	pod := filepath.Join(t.TempDir(), "pod.yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: back, namespace: qemu-vms}\nspec: {serviceAccountName: vm-runner, containers: [{name: back, image: ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:latest}]}\n"
	if err := os.WriteFile(pod, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cp.Kubectl(ctx, "create", "--dry-run=server", "--as=system:serviceaccount:qemu-vms:vm-operator", "-f", pod); err != nil {
		t.Errorf("VM-Operator makes no pod: %s, %v", out, err)
	}
	left := run("get", "configmap,deployment,service,role,rolebinding,serviceaccount,pvc", "-n", "qemu-vms", "-o", "name")
	for _, name := range []string{"configmap/vm-operator", "deployment.apps/vm-operator", "service/vm-operator", "serviceaccount/vm-operator",
		"role.rbac.authorization.k8s.io/vm-operator", "rolebinding.rbac.authorization.k8s.io/vm-operator", "persistentvolumeclaim/" + names.ImageRepositoryClaim} {
		if !slices.Contains(strings.Fields(left), name) {
			t.Errorf("%s is gone: %s", name, left)
		}
	}
	if n := len(machinesOf(t, run("get", "vms", "-n", "qemu-vms", "-o", "json"))); n != len(before) {
		t.Errorf("%d machines", n)
	}
}

// walk is the document whose way is gone here.
const walk = "../../docs/from-vm-operator.md"

// walkersKustomization is the folder my-vmop as the document has it, with this
// version's deploy folder.
func walkersKustomization(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(walk)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "# my-vmop/kustomization.yaml\n")
	text, _, ends := strings.Cut(text, "```")
	if !found || !ends {
		t.Fatalf("%s has no my-vmop/kustomization.yaml", walk)
	}
	dir := t.TempDir()
	if err := overlay(dir, strings.ReplaceAll(text, "github.com/vmop/sdk/deploy", "deploy")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// commandsOf are the arguments of the kubectl commands that stand in a section of the
// document as lines of their own.
func commandsOf(t *testing.T, heading string) [][]string {
	t.Helper()
	data, err := os.ReadFile(walk)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(data), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", walk, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out [][]string
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    kubectl "); ok {
			out = append(out, strings.Fields(command))
		}
	}
	if len(out) == 0 {
		t.Fatalf("no commands in the section %q of %s", heading, walk)
	}
	return out
}

func machinesOf(t *testing.T, text string) map[string]unstructured.Unstructured {
	t.Helper()
	var list unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]unstructured.Unstructured{}
	for _, o := range list.Items {
		out[o.GetName()] = o
	}
	return out
}

// missing are the paths of what one value has and another has not.
func missing(path string, was, is any) []string {
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		var out []string
		for k, v := range was {
			out = append(out, missing(path+"."+k, v, now[k])...)
		}
		return out
	case []any:
		now, _ := is.([]any)
		var out []string
		for i, v := range was {
			var there any
			if i < len(now) {
				there = now[i]
			}
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), v, there)...)
		}
		return out
	}
	if was != is {
		return []string{fmt.Sprintf("%s: %v, now %v", path, was, is)}
	}
	return nil
}
