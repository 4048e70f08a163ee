package deploytest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

var (
	machines = spec.GroupVersion().WithResource(spec.ResourceVirtualMachines)
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// storeMachine makes a machine in the namespace default, with all that the
// operator makes for it.
func storeMachine(t *testing.T, name string) {
	t.Helper()
	cpus := int32(1)
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	vm.TypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine}
	vm.Spec.VM.MaximumCPUs, vm.Spec.VM.State = &cpus, spec.StateRunning
	vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{}}
	vm.Spec.VM.Disks = []spec.Disk{{VolumeClaimTemplate: &spec.VolumeClaimTemplate{Spec: spec.VolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}}}
	stored := store(t, machines, vm)
	vm.UID = stored.GetUID()
	spec.Default(vm)
	all, err := machine.Objects(vm, objects.Settings{RunnerImage: "runner"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]schema.GroupVersionResource{"Secret": secrets, "ConfigMap": configMaps, "PersistentVolumeClaim": claims, "Pod": pods}
	made := map[string]int{}
	for _, o := range all {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		made[kind]++
		store(t, kinds[kind], o)
	}
	if made["Secret"] != 1 || made["PersistentVolumeClaim"] != 2 || made["Pod"] != 1 {
		t.Fatalf("the machine has %v", made)
	}
}

// removeMachine removes a machine with all that it leaves. No operator runs, which would remove the
// finalizer.
func removeMachine(t *testing.T, name string) {
	t.Helper()
	kubectl(t, "patch", "vm", "-n", "default", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl(t, "delete", "vm", "-n", "default", name, "--wait=true")
	kubectl(t, "delete", "pod", "-n", "default", name, "--ignore-not-found", "--wait=true")
	kubectl(t, "delete", "pvc,secrets,configmaps", "-n", "default", "-l", names.LabelInstance+"="+name, "--wait=false")
}

func store(t *testing.T, resource schema.GroupVersionResource, o reconcile.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	stored, err := client(t).Resource(resource).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// ofMachine lists what there is of a machine, by name and UID.
func ofMachine(t *testing.T, name string) string {
	t.Helper()
	return kubectl(t, "get", "vms,pods,configmaps,pvc,secrets,services", "-n", "default", "--ignore-not-found",
		"-l", names.LabelInstance+"="+name, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
}

// To remove the operator takes nothing from machines: neither what they are nor
// what their pods need while they run on.
func TestRemovingTheOperatorLeavesMachines(t *testing.T) {
	storeMachine(t, "stays")
	defer removeMachine(t, "stays")
	before := ofMachine(t, "stays")
	kept := func() string {
		return kubectl(t, "get", "-k", deploy+"/access", "-o", "name") +
			kubectl(t, "get", "-k", deploy+"/definitions", "-o", "name") +
			kubectl(t, "get", "-k", deploy+"/runner", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`) +
			kubectl(t, "get", "-k", deploy+"/image-repository", "-o", "jsonpath={.metadata.uid}")
	}
	needed := kept()
	for line := range strings.SplitSeq(strings.TrimSpace(kubectl(t, "delete", "-k", deploy, "--wait=true")), "\n") {
		if !strings.Contains(line, "\"vmop-operator") && !strings.Contains(line, "\"vmop-finalizer\"") {
			t.Errorf("removing the operator removes more: %s", line)
		}
	}
	if after := ofMachine(t, "stays"); after != before {
		t.Errorf("of the machine there was\n%sand is\n%s", before, after)
	}
	if after := kept(); after != needed {
		t.Errorf("of what machines need there was\n%s\nand is\n%s", needed, after)
	}
	if out := kubectl(t, "get", "all,cm,sa,role,rolebinding", "-n", "vmop-system", "-l", "app.kubernetes.io/name=vmop-operator", "-o", "name"); strings.Contains(out, "deployment") {
		t.Errorf("of the operator is left:\n%s", out)
	}
	kubectl(t, "apply", "--warnings-as-errors", "-k", deploy)
	operatorPod(t, "vmop-system")
}

// Nobody deletes a definition without having said that it is meant.
func TestDefinitionsAreNotDeletedByMistake(t *testing.T) {
	for crd := range strings.FieldsSeq(kubectl(t, "get", "-k", deploy+"/crds", "-o", "jsonpath={.items[*].metadata.name}")) {
		// A policy takes effect a moment after it is stored.
		var why string
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			out, err := cluster.Kubectl(t.Context(), "delete", "crd", crd, "--dry-run=server")
			if why = out; err != nil {
				why = err.Error()
			}
			if err != nil || time.Now().After(deadline) {
				break
			}
		}
		if !strings.Contains(why, "kubectl annotate crd "+crd+" "+spec.GroupName+"/destroy=yes") {
			t.Errorf("%s: %s", crd, why)
		}
	}
	// Nor has a deletion that was refused taken away what refuses the next one.
	there := func() string {
		return kubectl(t, "get", "-k", deploy+"/access", "-o", "name") + kubectl(t, "get", "-k", deploy+"/definitions", "-o", "name")
	}
	before := there()
	for range 2 {
		out, err := cluster.Kubectl(t.Context(), "delete", "-k", deploy+"/definitions")
		if err == nil || strings.Contains(out, "deleted") {
			t.Fatalf("the deletion of all definitions: %v\n%s", err, out)
		}
		t.Logf("$ kubectl delete -k deploy/definitions\n%v", err)
		if after := there(); after != before {
			t.Fatalf("of\n%s\nthere still is\n%s", before, after)
		}
	}
}

// A definition that is deleted, since somebody has said that it is meant, takes the
// machines, whose pods end, but neither disks nor passwords.
func TestADeletedDefinitionDestroysNoClaim(t *testing.T) {
	storeMachine(t, "careless")
	disks := func() string {
		return kubectl(t, "get", "pvc,secrets", "-n", "default", "-l", names.LabelInstance+"=careless", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
	}
	before := disks()
	// Its guest runs, and nobody is there to see it end.
	kubectl(t, "patch", "vm", "-n", "default", "careless", "--type=merge", "-p", `{"metadata":{"finalizers":["`+names.FinalizerMachine+`"]}}`)
	kubectl(t, "annotate", "crd", "vms."+spec.GroupName, spec.GroupName+"/destroy=yes")
	kubectl(t, "delete", "crd", "vms."+spec.GroupName, "--wait=false")
	kubectl(t, "wait", "--for=condition=Terminating", "crd", "vms."+spec.GroupName, "--timeout="+patience.String())
	kubectl(t, "wait", "--for=jsonpath={.metadata.deletionTimestamp}", "vm/careless", "-n", "default", "--timeout="+patience.String())
	// As docs/install.md has it.
	kubectl(t, "patch", "vm", "careless", "-n", "default", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl(t, "wait", "--for=delete", "crd", "vms."+spec.GroupName, "--timeout="+patience.String())
	kubectl(t, "apply", "--warnings-as-errors", "-k", deploy+"/definitions")
	kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	// What belongs to the machine goes: the collector of Kubernetes has acted.
	kubectl(t, "wait", "--for=delete", "configmap/careless", "pod/careless", "-n", "default", "--timeout="+patience.String())
	if after := disks(); after != before || strings.Count(after, "\n") != 3 {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	kubectl(t, "delete", "pvc,secrets", "-n", "default", "-l", names.LabelInstance+"=careless", "--wait=false")
}

// Each setting is one line of a kustomization, which starts the operator anew.
func TestSettingsAreSmall(t *testing.T) {
	dir := t.TempDir()
	if err := overlay(dir, `
resources: [deploy]
images: [{name: ghcr.io/vmop/operator, newName: registry.example.org/operator, newTag: "1.0"}]
configMapGenerator:
- name: vmop-operator-settings
  namespace: vmop-system
  behavior: merge
  literals: [VMOP_RUNNER_IMAGE=registry.example.org/runner:1.0, VMOP_RAM_OVERCOMMIT=1, "VMOP_NAMESPACES=lab,prod"]
`); err != nil {
		t.Fatal(err)
	}
	text := kubectl(t, "kustomize", dir)
	plain := kubectl(t, "kustomize", deploy)
	for _, want := range []string{"image: registry.example.org/operator:1.0\n", "VMOP_RUNNER_IMAGE: registry.example.org/runner:1.0\n", "VMOP_RAM_OVERCOMMIT: \"1\"\n", "VMOP_CPU_OVERCOMMIT: \"\"\n", "VMOP_NAMESPACES: lab,prod\n", "VMOP_EXCLUDE_NAMESPACES: \"\"\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	reference := func(text string) string {
		_, after, _ := strings.Cut(text, "configMapRef:")
		line, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
		return line
	}
	if a, b := reference(text), reference(plain); a == b || !strings.HasPrefix(a, "name: vmop-operator-settings-") {
		t.Errorf("the Deployment refers to %q before and to %q after", b, a)
	}
	// The API server takes it, too.
	kubectl(t, "apply", "--warnings-as-errors", "--dry-run=server", "-k", dir)
}
