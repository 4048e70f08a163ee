package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/operatorconfig"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// What reconcile.Objects shows, which is vmop-cli render --show objects, is what
// the operator makes: all of it, but for what the API server adds, the password
// and the versions of objects that only the API server knows.
func TestRenderedObjectsAreThoseOfTheOperator(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	const settings = `
"/Manager/Controller/Reconciler":
  loadBalancerService: {labels: {lab: "1"}, annotations: {note: x}}
  runnerDataPvc: {storageClassName: slow}
"/Operator": {allowedLoadBalancerAnnotations: [more]}
`
	parsed, _, err := operatorconfig.Parse("config.yaml", []byte(settings))
	if err != nil {
		t.Fatal(err)
	}
	parsed.Settings.Version, parsed.Settings.Operator = version(), identity(ownToken)
	t.start(cluster.Kubeconfig(), "--config="+t.file(settings))
	t.create(strings.Replace(machine("one", "Running"), "spec:\n", `spec:
  cloudInit: {metaData: {}, userData: {packages: [nginx]}}
  loadBalancerService: {annotations: {more: "2"}}
`, 1))
	t.phase("one", spec.PhaseRunning)
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := machinekind.Objects(vm, parsed.Settings)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range rendered {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		kinds = append(kinds, kind+"/"+o.GetName())
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		stored := t.stored(kind, o.GetName())
		delete(want, "status")
		metadata, _ := want["metadata"].(map[string]any)
		delete(metadata, "creationTimestamp")
		annotations, _ := stored["metadata"].(map[string]any)["annotations"].(map[string]any)
		switch o := o.(type) {
		case *corev1.Secret:
			data, _ := stored["data"].(map[string]any)
			keys := slices.AppendSeq([]string{names.PasswordKey}, maps.Keys(o.StringData))
			t.same("keys of the secret", slices.Sorted(slices.Values(keys)), slices.Sorted(maps.Keys(data)))
			delete(want, "stringData")
		case *corev1.Pod:
			for _, k := range []string{names.AnnotationConfigVersion, names.AnnotationDisplayVersion} {
				if annotations[k] == "" || annotations[k] == nil {
					t.Errorf("the pod has no %s", k)
				}
				delete(annotations, k)
			}
		}
		for _, part := range []string{"labels", "annotations", "ownerReferences"} {
			got := stored["metadata"].(map[string]any)[part]
			if !reflect.DeepEqual(metadata[part], got) {
				t.Errorf("%s %s: %s are rendered as\n%v\nand stored as\n%v", kind, o.GetName(), part, metadata[part], got)
			}
		}
		for _, d := range lacking(want, stored, kind) {
			t.Error(d)
		}
	}
	t.same("kinds and names", []string{
		"Secret/one-display-secret", "ConfigMap/one", "PersistentVolumeClaim/one-runner-data",
		"PersistentVolumeClaim/one-system-disk", "Pod/one", "Service/one",
	}, kinds)
}

// stored is an object of the test's namespace.
func (t *test) stored(kind, name string) map[string]any {
	t.Helper()
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := corev1.SchemeGroupVersion.WithResource(strings.ToLower(kind) + "s")
	u, err := all.Resource(resource).Namespace(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// lacking lists what of a value another one does not have. It may have more.
func lacking(want, got any, path string) []string {
	var out []string
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for k, v := range want {
			inner, ok := fields[k]
			if !ok && !reflect.ValueOf(v).IsZero() {
				out = append(out, fmt.Sprintf("%s.%s: %v is not stored", path, k, v))
				continue
			}
			out = append(out, lacking(v, inner, path+"."+k)...)
		}
	case []any:
		items, _ := got.([]any)
		if len(items) != len(want) {
			return []string{fmt.Sprintf("%s: %d items, and %d are stored", path, len(want), len(items))}
		}
		for i := range want {
			out = append(out, lacking(want[i], items[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			out = append(out, fmt.Sprintf("%s: %v, and %v is stored", path, want, got))
		}
	}
	return out
}
