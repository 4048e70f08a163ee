package deploytest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop/takeover"
)

// former is what VM-Operator's deploy folder leads to.
const former = "../../vmop/takeover/testdata/cluster/operator.yaml"

// What deploy/takeover installs in VM-Operator's namespace overwrites nothing that
// is there, which the check says beforehand; installing what would is noticed
// before Kubernetes refuses it.
func TestTakingOverANamespace(t *testing.T) {
	kubectl(t, "apply", "-f", former)
	before := stored(t)

	install := kubectl(t, "kustomize", filepath.Join(deploy, "takeover"))
	if found := urgent(t, before, install); len(found) > 0 {
		t.Errorf("the check finds %+v", found)
	}
	kubectl(t, "apply", "--warnings-as-errors", "-k", filepath.Join(deploy, "takeover"))
	if diff := cmp.Diff(specs(before), specs(stored(t))); diff != "" {
		t.Errorf("installing has changed what was there: %s", diff)
	}

	// Under VM-Operator's names.
	renamed := strings.ReplaceAll(install, "vmop-operator", "vm-operator")
	found := urgent(t, before, renamed)
	for _, kind := range []string{"Deployment", "RoleBinding"} {
		if !strings.Contains(found, kind+" qemu-vms/vm-operator") {
			t.Errorf("nothing about the %s: %s", kind, found)
		}
	}
	file := filepath.Join(t.TempDir(), "renamed.yaml")
	if err := os.WriteFile(file, []byte(renamed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "apply", "--dry-run=server", "-f", file); err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("it was to be refused: %s, %v", out, err)
	}
}

// The pod's configuration has VM-Operator's own beneath the operator's.
func TestTheOperatorReadsVMOperatorsConfiguration(t *testing.T) {
	install := kubectl(t, "kustomize", filepath.Join(deploy, "takeover"))
	if c := takeover.Configured(objectsOf(t, install)); c.File == "" || !slices.Contains(c.Environment, "VMOP_RUNNER_IMAGE=ghcr.io/vmop/runner:latest") {
		t.Errorf("the configuration that is installed: %+v", c)
	}
	for _, want := range []string{"--vm-operator-config=/etc/opt/vmoperator/vm-operator.yaml", "path: vm-operator.yaml"} {
		if !strings.Contains(install, want) {
			t.Errorf("no %s in\n%s", want, install)
		}
	}
}

// urgent are the findings about what is to be installed that ask for something.
func urgent(t *testing.T, there []unstructured.Unstructured, install string) string {
	t.Helper()
	var out []string
	for _, f := range takeover.Check(takeover.Input{Objects: there, Install: objectsOf(t, install)}) {
		if f.Urgency == takeover.Before && f.Topic == takeover.TopicInstall {
			out = append(out, f.Object()+": "+f.What)
		}
	}
	return strings.Join(out, "\n")
}

func objectsOf(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// stored reads the objects of VM-Operator as they are.
func stored(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(former)
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{
		"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings",
		"ConfigMap": "configmaps", "Service": "services", "PersistentVolumeClaim": "persistentvolumeclaims", "Deployment": "deployments",
	}
	var out []unstructured.Unstructured
	for _, o := range objectsOf(t, string(data)) {
		gvr := o.GroupVersionKind().GroupVersion().WithResource(resources[o.GetKind()])
		found, err := client(t).Resource(gvr).Namespace(o.GetNamespace()).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *found)
	}
	return out
}

// specs are objects without metadata and what controllers report.
func specs(list []unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for i := range list {
		o := list[i].DeepCopy()
		name := o.GetKind() + " " + o.GetName()
		delete(o.Object, "metadata")
		delete(o.Object, "status")
		data, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			panic(err)
		}
		out[name] = string(data)
	}
	return out
}
