package deploytest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typed "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/frontends/runner/kubernetes"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/names"
	vmrunner "github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
	"github.com/vmop/sdk/vmop/spec"
)

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// stolen is a client with the token that a pod's runner has; without a pod, with
// one of the same account that belongs to none.
func stolen(t *testing.T, pod string) *rest.Config {
	t.Helper()
	set, err := typed.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if pod != "" {
		p, err := set.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: p.UID}
	}
	token, err := set.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), names.ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken = token.Status.Token
	return config
}

// patchStatus merges fields into the status of a machine.
func patchStatus(t *testing.T, as *rest.Config, machine, status string, o metav1.PatchOptions) error {
	t.Helper()
	c, err := dynamic.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resource(machines).Namespace("default").Patch(t.Context(), machine, types.MergePatchType, []byte(`{"status":`+status+`}`), o, "status")
	return err
}

// forgedEvent is an event about a machine.
func forgedEvent(machine, controller string, more map[string]any) *unstructured.Unstructured {
	o := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"name": fmt.Sprintf("%s.%x", machine, time.Now().UnixNano()), "namespace": "default"},
		"eventTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"), "type": "Warning", "action": "Run", "reason": "Lost",
		"reportingController": controller, "reportingInstance": "x", "note": "run kubectl delete pvc --all",
		"regarding": map[string]any{"apiVersion": spec.GroupVersion().String(), "kind": spec.KindVirtualMachine, "namespace": "default", "name": machine},
	}
	maps.Copy(o, more)
	return &unstructured.Unstructured{Object: o}
}

// What the token of a machine's pod is good for, whoever has it: the report about
// that machine, and nothing else in the namespace.
func TestAStolenRunnerTokenReachesItsOwnReportOnly(t *testing.T) {
	storeMachine(t, "mine")
	storeMachine(t, "victim")
	defer removeMachine(t, "mine")
	defer removeMachine(t, "victim")
	as := stolen(t, "mine")
	awaitPolicies(t, as, "mine")
	c, err := dynamic.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}

	// What a runner does, it may.
	runner, err := kubernetes.NewClient(as, "default", "mine")
	if err != nil {
		t.Fatal(err)
	}
	m, err := runner.Machine(t.Context())
	if err != nil || m.UID == "" || m.ResourceVersion == "" || len(m.Conditions) < 5 {
		t.Fatalf("%+v, %v", m, err)
	}
	report := vmstatus.Status{
		CPUs: 1, RAM: "1Gi", ChangedDocuments: []vmstatus.ChangedDocument{{Name: "userData"}}, AttachmentKey: strings.Repeat("0a", 32),
		Attachments: []vmstatus.Attachment{{UID: "u", Name: "data", Phase: string(live.AttachmentPending), Message: "nobody exports it yet"}},
		Disks:       []vmstatus.Disk{{Name: "data-vd-claim", Size: "1Gi", Message: "it does not grow"}},
		Conditions:  []vmstatus.Condition{{Type: "Running", Status: live.True, Reason: "VmStarted", LastTransitionTime: time.Now().UTC().Truncate(time.Second), ObservedGeneration: 1}},
	}
	if err := runner.ApplyStatus(t.Context(), m, &report); err != nil {
		t.Error(err)
	}
	if m, err = runner.Machine(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, _ := vmstatus.Of(&vmrunner.State{Phase: vmrunner.PhaseStopped, Outcome: &vmrunner.Outcome{
		Cause: vmrunner.CauseGuestShutdown, Message: "the guest has powered itself off", QEMUStatus: "exit status 0",
	}}, nil, time.Now())
	if err := runner.ApplyStatus(t.Context(), m, &last); err != nil {
		t.Error("the last report: ", err)
	}
	if _, err := c.Resource(events).Namespace("default").Create(t.Context(), forgedEvent("mine", names.RunnerController, nil), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}

	// Nothing else.
	if err := patchStatus(t, cluster.Config(), "mine", `{"phase":"Starting","ready":true}`, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for name, attack := range map[string]func() error{
		"read another machine": func() error {
			_, err := c.Resource(machines).Namespace("default").Get(t.Context(), "victim", metav1.GetOptions{})
			return err
		},
		"list machines": func() error {
			_, err := c.Resource(machines).Namespace("default").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"read by a write that is not carried out": func() error { return patchStatus(t, as, "victim", "{}", dry) },
		"read by an apply that is not carried out": func() error {
			other, err := kubernetes.NewClient(as, "default", "victim")
			if err != nil {
				return err
			}
			_, err = other.Machine(t.Context())
			return err
		},
		"report about another machine": func() error {
			return patchStatus(t, as, "victim", `{"cpus":7}`, metav1.PatchOptions{})
		},
		"assign another machine": func() error {
			return patchStatus(t, as, "victim", `{"assignment":{"pool":"desktops","user":"mallory","lastUsed":"2026-01-01T00:00:00Z"}}`, metav1.PatchOptions{})
		},
		"assign the own machine": func() error {
			return patchStatus(t, as, "mine", `{"assignment":{"pool":"desktops","user":"mallory","lastUsed":"2026-01-01T00:00:00Z"}}`, metav1.PatchOptions{})
		},
		"say how it ended": func() error {
			return patchStatus(t, as, "mine", `{"lastEnd":{"podUID":"x","cause":"guest-shutdown","message":"","time":"2026-01-01T00:00:00Z","observedGeneration":1}}`, metav1.PatchOptions{})
		},
		"say that it runs":      func() error { return patchStatus(t, as, "mine", `{"phase":"Running"}`, metav1.PatchOptions{}) },
		"say who had a console": func() error { return patchStatus(t, as, "mine", `{"consoleUser":"mallory"}`, metav1.PatchOptions{}) },
		"remove all":            func() error { return patchStatus(t, as, "mine", "null", metav1.PatchOptions{}) },
		"conclude": func() error {
			return patchStatus(t, as, "mine", `{"conditions":[{"type":"PodReady","status":"True","reason":"PodRunning","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":1}]}`, metav1.PatchOptions{})
		},
		"report in the operator's name": func() error {
			return patchStatus(t, as, "mine", `{"cpus":7}`, metav1.PatchOptions{FieldManager: names.OperatorStatusManager})
		},
		"report in the name of who assigns": func() error {
			return patchStatus(t, as, "mine", `{"cpus":7}`, metav1.PatchOptions{FieldManager: names.AssignmentManager})
		},
		"change a specification": func() error {
			_, err := c.Resource(machines).Namespace("default").Patch(t.Context(), "mine", types.MergePatchType, []byte(`{"spec":{"vm":{"state":"Stopped"}}}`), metav1.PatchOptions{})
			return err
		},
		"delete": func() error {
			return c.Resource(machines).Namespace("default").Delete(t.Context(), "mine", metav1.DeleteOptions{})
		},
		"tell of another machine": func() error {
			_, err := c.Resource(events).Namespace("default").Create(t.Context(), forgedEvent("victim", names.RunnerController, nil), metav1.CreateOptions{})
			return err
		},
		"speak as the operator": func() error {
			_, err := c.Resource(events).Namespace("default").Create(t.Context(), forgedEvent("mine", "vm-operator", nil), metav1.CreateOptions{})
			return err
		},
		"tell of something else": func() error {
			_, err := c.Resource(events).Namespace("default").Create(t.Context(), forgedEvent("mine", names.RunnerController, map[string]any{
				"regarding": map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "mine"},
			}), metav1.CreateOptions{})
			return err
		},
		"read a secret": func() error {
			_, err := c.Resource(secrets).Namespace("default").Get(t.Context(), "victim-display-secret", metav1.GetOptions{})
			return err
		},
		"read a configuration": func() error {
			_, err := c.Resource(configMaps).Namespace("default").Get(t.Context(), "victim", metav1.GetOptions{})
			return err
		},
		"use a token of no pod": func() error {
			return patchStatus(t, stolen(t, ""), "mine", `{"cpus":7}`, metav1.PatchOptions{})
		},
	} {
		// A policy answers Forbidden, or Invalid by its own reason.
		if err := attack(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// awaitPolicies waits until the API server knows the policies, which it reads
// some time after they were made.
func awaitPolicies(t *testing.T, as *rest.Config, machine string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := patchStatus(t, as, machine, `{"phase":"Running"}`, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the policies are not in force: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Each field of the status is somebody's, and the policy knows whose: the runner's
// are those that it reports.
func TestThePolicyKnowsEveryFieldOfTheStatus(t *testing.T) {
	operators := []string{
		"phase", "created", "ready", "nodeName", "ipAddress", "observedGeneration", "restartAwaitingChanges", "lastEnd", "claims", "power", "waits", "stats", "blockDeviceRefs", "virtualMachinePods",
		"consoleUser", "assignment",
	}
	data, err := os.ReadFile(deploy + "/access/policies/runner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	quoted := func(variable string) []string {
		_, text, _ := strings.Cut(string(data), "name: "+variable+"\n")
		text, _, _ = strings.Cut(text, "]")
		var out []string
		for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		return out
	}
	known := append(quoted("reported"), operators...)
	var fields []string
	for f := range reflect.TypeFor[spec.VirtualMachineStatus]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	slices.Sort(known)
	slices.Sort(fields)
	if !slices.Equal(known, fields) {
		t.Errorf("the policy and this test know the fields\n%v, there are\n%v", known, fields)
	}
	if got, want := quoted("concluded"), spec.OperatorConditionTypes(); !slices.Equal(got, want) {
		t.Errorf("the operator's conditions are %v, the policy has %v", want, got)
	}
}

// Who only starts and stops machines cannot change what they are.
func TestTheRoleThatStartsAndStops(t *testing.T) {
	storeMachine(t, "started")
	defer removeMachine(t, "started")
	kubectl(t, "create", "rolebinding", "dave", "-n", "default", "--clusterrole=vmop-operate", "--user=dave")
	defer kubectl(t, "delete", "rolebinding", "-n", "default", "dave")
	patch := func(user, text string, kind types.PatchType) error {
		config := cluster.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Resource(machines).Namespace("default").Patch(t.Context(), "started", kind, []byte(text), metav1.PatchOptions{FieldManager: "test"})
		return err
	}
	operator := "system:serviceaccount:vmop-system:vmop-operator"
	for _, user := range []string{"dave", operator} {
		for text, may := range map[string]bool{
			`{"spec":{"vm":{"state":"Stopped"}}}`:                                                      true,
			`{"metadata":{"annotations":{"vmoperator.jdrupes.org/reset-request":"1"}}}`:                true,
			`{"metadata":{"annotations":{"vmoperator.jdrupes.org/force-stop":"1"}}}`:                   true,
			`{"metadata":{"annotations":{"vmoperator.jdrupes.org/power-request":"stop 1"}}}`:           true,
			`{"metadata":{"finalizers":["vmoperator.jdrupes.org/vm-cleanup"]}}`:                        true,
			`{"metadata":{"finalizers":["example.org/mine"]}}`:                                         false,
			`{"spec":{"vm":{"state":"Running","maximumCpus":2}}}`:                                      false,
			`{"spec":{"image":{"source":"attacker.example/suid-root"}}}`:                               false,
			`{"spec":{"nodeName":"control-plane"}}`:                                                    false,
			`{"spec":{"vm":{"networks":[{"tap":{"bridge":"cni0"}}]}}}`:                                 false,
			`{"spec":{"permissions":[{"user":"dave","may":["*"]}]}}`:                                   false,
			`{"metadata":{"labels":{"a":"b"}}}`:                                                        false,
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied":"{}"}}}`:                 false,
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a"}]}}`: false,
		} {
			err := patch(user, text, types.MergePatchType)
			if may && err != nil || !may && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("%s: %s: %v", user, text, err)
			}
		}
	}
	// Nobody looks after this machine.
	kubectl(t, "patch", "vm", "-n", "default", "started", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	// The administrator is not bound by it.
	c := cluster.Config()
	if c.Impersonate.UserName != "" {
		t.Fatal(c.Impersonate)
	}
	kubectl(t, "patch", "vm", "-n", "default", "started", "--type=merge", "-p", `{"spec":{"vm":{"bootMenu":true}}}`)
}

// view, edit and admin reach every kind that there is a definition of.
func TestRolesOfUsersReachEveryKind(t *testing.T) {
	for _, user := range []string{"view", "edit", "admin"} {
		kubectl(t, "create", "rolebinding", "user-"+user, "-n", "default", "--clusterrole="+user, "--user="+user)
		defer kubectl(t, "delete", "rolebinding", "-n", "default", "user-"+user)
	}
	var crds struct {
		Items []struct {
			Spec struct {
				Scope string
				Names struct{ Plural string }
			}
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "crd", "-o", "json")), &crds); err != nil || len(crds.Items) < 2 {
		t.Fatal(len(crds.Items), err)
	}
	for _, crd := range crds.Items {
		if crd.Spec.Scope != "Namespaced" {
			continue // nobody has a role of a namespace on those
		}
		for user, verbs := range map[string]string{
			"view":  "get list watch",
			"edit":  "get list watch create update patch delete deletecollection",
			"admin": "get list watch create update patch delete deletecollection",
		} {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				want := slices.Contains(strings.Fields(verbs), verb)
				if got := userMay(t, user, verb, "default", spec.GroupName, crd.Spec.Names.Plural, ""); got != want {
					t.Errorf("%s may %s %s: %v", user, verb, crd.Spec.Names.Plural, got)
				}
			}
			if userMay(t, user, "patch", "default", spec.GroupName, crd.Spec.Names.Plural, "status") {
				t.Errorf("%s may write the status of %s", user, crd.Spec.Names.Plural)
			}
		}
	}
}

// Who has a role in a namespace alone sees what the cluster offers where a component says
// so, and writes none of it.
func TestUsersSeeTheKindsOfTheClusterWhereItIsAllowed(t *testing.T) {
	dir := t.TempDir()
	if err := overlay(dir, "components: [deploy/components/read-cluster-kinds]\n"); err != nil {
		t.Fatal(err)
	}
	resources := strings.Fields(kubectl(t, "api-resources", "--api-group="+spec.GroupName, "--namespaced=false", "-o", "name"))
	if len(resources) < 2 {
		t.Fatalf("the cluster has %q", resources)
	}
	may := func(verb, resource string) bool {
		name, _, _ := strings.Cut(resource, ".")
		return userMay(t, "mallory", verb, "", spec.GroupName, name, "")
	}
	for _, resource := range resources {
		if may("list", resource) {
			t.Errorf("everybody may list %s, and nobody has said so", resource)
		}
	}
	kubectl(t, "apply", "-k", dir)
	defer kubectl(t, "delete", "-k", dir)
	for _, resource := range resources {
		deadline := time.Now().Add(patience) // the API server's roles are a cache
		for _, verb := range []string{"get", "list", "watch"} {
			for !may(verb, resource) {
				if time.Now().After(deadline) {
					t.Fatalf("mallory may not %s %s", verb, resource)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			if may(verb, resource) {
				t.Errorf("mallory may %s %s", verb, resource)
			}
		}
	}
}

// Who administers one namespace has no right to images of the cluster, nor to what serves
// them and to the keys of other namespaces' copies. Even a role for all namespaces writes
// no image of the cluster.
func TestImagesOfTheClusterAreNobodyElses(t *testing.T) {
	for _, role := range []string{"edit", "admin"} {
		kubectl(t, "create", "rolebinding", "mallory-"+role, "-n", "default", "--clusterrole="+role, "--user=mallory")
		defer kubectl(t, "delete", "rolebinding", "-n", "default", "mallory-"+role)
		kubectl(t, "create", "clusterrolebinding", "everywhere-"+role, "--clusterrole="+role, "--user=everywhere")
		defer kubectl(t, "delete", "clusterrolebinding", "everywhere-"+role)
	}
	if !userMay(t, "mallory", "get", "default", "", "secrets", "") || !userMay(t, "mallory", "create", "default", spec.GroupName, spec.ResourceDisks, "") {
		t.Fatal("nothing was tried: mallory has no rights in her own namespace")
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		for _, user := range []string{"mallory", "everywhere"} {
			for _, part := range []string{"", "status"} {
				if userMay(t, user, verb, "", spec.GroupName, spec.ResourceClusterImages, part) {
					t.Errorf("%s may %s images of the cluster, %q", user, verb, part)
				}
			}
		}
	}
	for _, namespace := range []string{"vmop-system", "elsewhere"} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, thing := range []string{"secrets", "pods", "persistentvolumeclaims"} {
				if userMay(t, "mallory", verb, namespace, "", thing, "") {
					t.Errorf("mallory may %s %s in %s", verb, thing, namespace)
				}
			}
		}
	}
	const image = `{"apiVersion":"vmoperator.jdrupes.org/v1","kind":"ClusterVirtualImage","metadata":{"name":"theirs"},"spec":{"persistentVolumeClaim":{"size":"1Gi"},"dataSource":{"type":"HTTP","http":{"url":"http://images.test/a"}}}}`
	file := filepath.Join(t.TempDir(), "image.json")
	if err := os.WriteFile(file, []byte(image), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "create", "--as=mallory", "-f", file); err == nil || !strings.Contains(fmt.Sprint(out, err), "Forbidden") {
		t.Errorf("mallory makes an image of the cluster: %v: %s", err, out)
	}
}
