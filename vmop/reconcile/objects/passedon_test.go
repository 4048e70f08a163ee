package objects_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// reserved are keys that no pod must have from its machine.
var reserved = []string{
	names.LabelName, names.LabelInstance, names.LabelManagedBy, names.LabelComponent,
	names.AnnotationApplied, names.AnnotationPassedOn, names.AnnotationForceStop, "vmrunner.jdrupes.org/cmVersion",
	"kubernetes.io/psp", "topology.kubernetes.io/zone", "kubectl.kubernetes.io/last-applied-configuration",
	"container.apparmor.security.beta.kubernetes.io/web", "seccomp.security.alpha.kubernetes.io/pod", "k8s.v1.cni.cncf.io/networks",
	"cluster-autoscaler.kubernetes.io/safe-to-evict", "cdi.k8s.io/gpu", "applyset.kubernetes.io/part-of",
	"io.kubernetes.cri-o.Devices", "sidecar.istio.io/inject", "iam.amazonaws.com/role", "pre.hook.backup.velero.io/command",
	"argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name", "objectset.rio.cattle.io/hash",
}

// What changes the treatment of a pod does not reach it, whatever the administrator
// allows of it; labels of others and annotations without a prefix do.
func TestReservedKeysAreNotPassedOn(t *testing.T) {
	vm := &spec.VirtualMachine{}
	vm.Labels = map[string]string{"app": "web", "example.org/tier": "front", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "1", "azure.workload.identity/use": "true"}
	vm.Annotations = map[string]string{"note": "a", "prometheus.io/scrape": "true"}
	for _, k := range reserved {
		vm.Annotations[k] = "x"
		if strings.Contains(k, "kubernetes.io/") || strings.Contains(k, "istio.io") || strings.Contains(k, "argoproj") || strings.Contains(k, "jdrupes") {
			vm.Labels[k] = "x"
		}
	}
	labels := map[string]string{"app": "web", "example.org/tier": "front", "app.kubernetes.io/part-of": "shop"}
	for _, c := range []struct {
		allowed objects.Allowed
		want    map[string]string
	}{
		{objects.Allowed{}, map[string]string{"note": "a"}},
		{objects.Allowed{PodAnnotations: []string{"prometheus.io/*"}}, map[string]string{"note": "a", "prometheus.io/scrape": "true"}},
	} {
		got := objects.PassOn(vm, &c.allowed)
		if diff := cmp.Diff(objects.PassedOn{Labels: labels, Annotations: c.want}, got); diff != "" {
			t.Errorf("%v:\n%s", c.allowed, diff)
		}
	}
	// Who trusts authors gives them what other programs do with pods, and still nothing
	// of Kubernetes' and of the operator's.
	for k := range objects.PassOn(vm, &objects.Allowed{Everything: true, PodAnnotations: []string{"*"}}).Annotations {
		if strings.Contains(k, "kubernetes.io/") && !strings.HasPrefix(k, "io.") || strings.Contains(k, "k8s.io/") || strings.Contains(k, "jdrupes.org/") {
			t.Errorf("%s is passed on", k)
		}
	}
}

// A pod that is brought up to date is as one that is made now; what is the operator's
// and what somebody else has put on it stays; and once is enough.
func TestPodsAreBroughtUpToDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) map[string]string {
			key := rapid.SampledFrom(append([]string{"app", "tier", "example.org/a", "note"}, reserved...))
			return rapid.MapOfN(key, rapid.SampledFrom([]string{"", "a", "b"}), 0, 6).Draw(t, name)
		}
		allowed := func() *objects.Allowed {
			return rapid.SampledFrom([]*objects.Allowed{{}, {Everything: true}, {PodAnnotations: []string{"example.org/*", "*kubernetes*"}}}).Draw(t, "allowed")
		}
		own := func() *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Labels:      maps.Clone(objects.InstanceLabels("web")),
				Annotations: map[string]string{names.AnnotationApplied: "1"},
			}}
		}
		before := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Labels: some("labels"), Annotations: some("annotations")}}
		after := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Labels: some("labels"), Annotations: some("annotations")}}
		pod, want := own(), own()
		objects.PassOn(before, allowed()).AddTo(pod)
		p := objects.PassOn(after, allowed())
		p.AddTo(want)
		if rapid.Bool().Draw(t, "forged") {
			// Who writes a record takes nothing from the operator.
			pod = own()
			pod.Annotations[names.AnnotationPassedOn] = `{"labels":["` + strings.Join(reserved, `","`) + `"],"annotations":["` + strings.Join(reserved, `","`) + `"]}`
		}
		pod.Labels["theirs"], want.Labels["theirs"] = "a", "a"
		labels, annotations := p.Missing(pod)
		patch(pod.Labels, labels)
		patch(pod.Annotations, annotations)
		if diff := cmp.Diff(want, pod); diff != "" {
			t.Fatal(diff)
		}
		if labels, annotations := p.Missing(pod); labels != nil || annotations != nil {
			t.Fatalf("again %v %v", labels, annotations)
		}
	})
}

func patch(m map[string]string, with map[string]*string) {
	for k, v := range with {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = *v
		}
	}
}

// Annotations have a limit in Kubernetes, beyond which a pod could not be made.
func TestNotAllOfMuchIsPassedOn(t *testing.T) {
	vm := &spec.VirtualMachine{}
	vm.Annotations = map[string]string{"a": "small", "b": strings.Repeat("b", 200<<10), "kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("c", 200<<10), "0": "first"}
	vm.Labels = map[string]string{"app": "web"}
	got := objects.PassOn(vm, &objects.Allowed{})
	if diff := cmp.Diff(objects.PassedOn{Labels: vm.Labels, Annotations: map[string]string{"0": "first", "a": "small"}}, got); diff != "" {
		t.Error(diff)
	}
}
