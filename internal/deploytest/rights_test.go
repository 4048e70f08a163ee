package deploytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

var (
	reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
)

// may asks the API server about a service account.
func may(t *testing.T, account, verb, namespace, group, resource, subresource string) bool {
	t.Helper()
	return userMay(t, "system:serviceaccount:"+account, verb, namespace, group, resource, subresource)
}

func userMay(t *testing.T, user, verb, namespace, group, resource, subresource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   user,
			Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource,
			},
		},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client(t).Resource(reviews).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	convert(t, answer, review)
	return review.Status.Allowed
}

// The whole matrix, so that a right that is added by mistake is seen too.
func TestWhatAccountsMayDo(t *testing.T) {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	things := []struct{ group, resource string }{
		{spec.GroupName, "vms"}, {spec.GroupName, "vms/status"}, {spec.GroupName, "vmpools"}, {spec.GroupName, "vmpools/status"},
		{spec.GroupName, "virtualmachineoperations"}, {spec.GroupName, "virtualmachineoperations/status"},
		{spec.GroupName, "virtualmachineclasses"}, {spec.GroupName, "virtualdisks"}, {spec.GroupName, "virtualdisks/status"},
		{spec.GroupName, "virtualimages"}, {spec.GroupName, "virtualimages/status"},
		{spec.GroupName, "clustervirtualimages"}, {spec.GroupName, "clustervirtualimages/status"},
		{spec.GroupName, "virtualmachineblockdeviceattachments"}, {spec.GroupName, "virtualmachineblockdeviceattachments/status"},
		{names.SnapshotGroup, "volumesnapshots"}, {names.SnapshotGroup, "volumesnapshotcontents"},
		{"", "pods"}, {"", "pods/exec"}, {"", "pods/log"}, {"", "services"}, {"", "configmaps"}, {"", "secrets"},
		{"", "persistentvolumeclaims"}, {"", "persistentvolumes"}, {"", "events"}, {"events.k8s.io", "events"},
		{"", "nodes"}, {"", "namespaces"}, {"", "serviceaccounts"}, {"", "serviceaccounts/token"},
		{"apps", "deployments"}, {"apps", "statefulsets"}, {"coordination.k8s.io", "leases"},
		{rbacv1.GroupName, "roles"}, {rbacv1.GroupName, "rolebindings"}, {rbacv1.GroupName, "clusterroles"},
		{"apiextensions.k8s.io", "customresourcedefinitions"},
	}
	var b strings.Builder
	for _, c := range []struct{ account, namespace, about string }{
		{"vmop-system:vmop-operator", "vmop-system", "the operator for all namespaces, in its own"},
		{"vmop-system:vmop-operator", "default", "where deploy/runner gives it its rights"},
		{"vmop-system:vmop-operator", "elsewhere", "and in any other"},
		{namespaceOfOne + ":vmop-operator", namespaceOfOne, "the operator for one namespace, in it"},
		{namespaceOfOne + ":vmop-operator", "elsewhere", "and in any other"},
		{"default:vm-runner", "default", "a machine's runner, in its namespace"},
		{"default:vm-runner", "elsewhere", "and in any other"},
	} {
		fmt.Fprintf(&b, "# %s: %s in %s\n", c.about, c.account, c.namespace)
		some := false
		for _, thing := range things {
			resource, subresource, _ := strings.Cut(thing.resource, "/")
			var yes []string
			for _, verb := range verbs {
				if may(t, c.account, verb, c.namespace, thing.group, resource, subresource) {
					yes = append(yes, verb)
				}
			}
			if len(yes) > 0 {
				some = true
				fmt.Fprintf(&b, "%-32s %s\n", strings.Trim(thing.resource+"."+thing.group, "."), strings.Join(yes, " "))
			}
		}
		if !some {
			fmt.Fprintln(&b, "nothing")
		}
		fmt.Fprintln(&b)
	}
	golden(t, "rights.txt", b.String())
}

// Some of what must never be, whatever the golden file says.
func TestWhatAccountsMayNotDo(t *testing.T) {
	for _, c := range []struct{ account, verb, group, resource string }{
		{"vmop-system:vmop-operator", "delete", "", "persistentvolumeclaims"},
		{"vmop-system:vmop-operator", "deletecollection", "", "pods"},
		{"vmop-system:vmop-operator", "patch", "", "secrets"},
		{"vmop-system:vmop-operator", "delete", "", "secrets"},
		{"vmop-system:vmop-operator", "delete", spec.GroupName, "vms"},
		{"vmop-system:vmop-operator", "update", spec.GroupName, "vms"},
		{"vmop-system:vmop-operator", "list", "", "serviceaccounts"}, // but one name
		{"vmop-system:vmop-operator", "watch", "rbac.authorization.k8s.io", "rolebindings"},
		{"default:vm-runner", "get", spec.GroupName, "vms"},
		{"default:vm-runner", "get", "", "secrets"},
		{"default:vm-runner", "get", "", "configmaps"},
		{"default:vm-runner", "patch", spec.GroupName, "vms"},
		{"default:vm-runner", "list", spec.GroupName, "vms"},
		{"default:vm-runner", "create", "", "pods"},
	} {
		if may(t, c.account, c.verb, "default", c.group, c.resource, "") {
			t.Errorf("%s may %s %s", c.account, c.verb, c.resource)
		}
	}
}

// Who wants disks deleted with their machines says so once more, by a component.
func TestClaimsAreDeletedWhereItIsAllowed(t *testing.T) {
	const namespace, account = "deletes", "vmop-system:vmop-operator"
	dir := t.TempDir()
	if err := overlay(dir, "namespace: "+namespace+"\nresources: [deploy/runner]\ncomponents: [deploy/components/delete-claims]\n"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "namespace", namespace}, {"apply", "--warnings-as-errors", "-k", dir}} {
		if out, err := cluster.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(out, err)
		}
	}
	deadline := time.Now().Add(patience) // the API server's roles are a cache
	for !may(t, account, "delete", namespace, "", "persistentvolumeclaims", "") {
		if time.Now().After(deadline) {
			t.Fatal("the operator may not delete claims")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, verb := range []string{"update", "deletecollection"} {
		if may(t, account, verb, namespace, "", "persistentvolumeclaims", "") {
			t.Errorf("the operator may %s claims", verb)
		}
	}
	if !may(t, account, "delete", namespace, "", "secrets", "") {
		t.Error("the operator may not delete display secrets")
	}
	for _, verb := range []string{"update", "patch", "deletecollection"} {
		if may(t, account, verb, namespace, "", "secrets", "") {
			t.Errorf("the operator may %s secrets", verb)
		}
	}
}

// Whatever a plan contains, the operator may do.
func TestTheOperatorMayCarryOutPlans(t *testing.T) {
	resources := map[string]string{
		"Pod": "pods", "PersistentVolumeClaim": "persistentvolumeclaims", "ConfigMap": "configmaps",
		"Secret": "secrets", "Service": "services", spec.KindVirtualMachine: spec.ResourceVirtualMachines,
		spec.KindOperation: spec.ResourceOperations, spec.KindAttachment: spec.ResourceAttachments,
	}
	object := func(kind string) reconcile.Object {
		meta := metav1.TypeMeta{APIVersion: "v1", Kind: kind}
		switch kind {
		case "Pod":
			return &corev1.Pod{TypeMeta: meta}
		case "PersistentVolumeClaim":
			return &corev1.PersistentVolumeClaim{TypeMeta: meta}
		case "ConfigMap":
			return &corev1.ConfigMap{TypeMeta: meta}
		case "Secret":
			return &corev1.Secret{TypeMeta: meta}
		}
		return &corev1.Service{TypeMeta: meta}
	}
	actions := []reconcile.Action{
		reconcile.Apply{Object: object("ConfigMap")}, reconcile.Apply{Object: object("Service")},
		reconcile.Create{Object: object("Secret")}, reconcile.Create{Object: object("Pod")}, reconcile.Create{Object: object("PersistentVolumeClaim")},
		reconcile.UpdateClaim{}, reconcile.AnnotatePod{}, reconcile.AdoptPod{}, reconcile.DeletePod{}, reconcile.DeleteService{}, reconcile.SetFinalizers{Kind: spec.KindVirtualMachine}, reconcile.Patch{Kind: spec.KindVirtualMachine},
		reconcile.SetFinalizers{Kind: spec.KindOperation}, reconcile.DeleteOperation{}, reconcile.DeleteConfigMap{},
		reconcile.DeleteAttachment{}, reconcile.Create{Object: spec.NewAttachment("", "", "", spec.AttachedBlockDevice{})},
	}
	for account, namespace := range map[string]string{"vmop-system:vmop-operator": "default", namespaceOfOne + ":vmop-operator": namespaceOfOne} {
		for _, a := range actions {
			target := a.Target()
			verbs := []string{target.Verb}
			if _, ok := a.(reconcile.Apply); ok {
				verbs = append(verbs, "create") // if it is not there
			}
			group := ""
			if target.Kind == spec.KindVirtualMachine || target.Kind == spec.KindOperation || target.Kind == spec.KindAttachment {
				group = spec.GroupName
			}
			for _, verb := range verbs {
				if !may(t, account, verb, namespace, group, resources[target.Kind], "") {
					t.Errorf("%s may not %s %s, as %T wants", account, verb, resources[target.Kind], a)
				}
			}
		}
		for _, kind := range spec.Kinds() {
			if kind.Name == spec.KindClass || kind.ClusterScoped && namespace == namespaceOfOne {
				continue // nobody reports about it, or not that operator
			}
			if !may(t, account, "patch", namespace, spec.GroupName, kind.Plural, "status") {
				t.Errorf("%s may not report the status of a %s", account, kind.Name)
			}
		}
	}
}
