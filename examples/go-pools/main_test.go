package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

const manifests = `
apiVersion: v1
kind: Secret
metadata:
  name: desktop-1-display-secret
  labels: {app.kubernetes.io/name: vm-runner, app.kubernetes.io/instance: desktop-1, app.kubernetes.io/component: display-secret}
stringData: {display-password: initial, password-expiry: now}
---
apiVersion: v1
kind: Pod
metadata: {name: desktop-1}
spec: {containers: [{name: desktop-1, image: none}]}
`

// A user asks for a machine on a real API server. The test is what would run it.
func TestAUserGetsAConsole(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	kubectl := func(args ...string) {
		t.Helper()
		if _, err := cluster.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("apply", "-f", "../../deploy/crds")
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	kubectl("apply", "-f", "../pool/pool.yaml")
	file := t.TempDir() + "/objects.yaml"
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "-f", file)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", cluster.Kubeconfig())

	// Who is no student gets nothing.
	if err := run(ctx, []string{"default", "students", "mallory"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "grants the user") {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	var out bytes.Buffer
	go func() { done <- run(ctx, []string{"default", "students", "ann", "student"}, &out) }()
	s := session{client: client, namespace: "default"}
	if err := s.await(ctx, "desktop-1", time.Minute, func(vm *spec.VirtualMachine) bool {
		return vm.Spec.VM.State == spec.StateRunning && vm.Status.Assignment.User == "ann"
	}); err != nil {
		t.Fatal(err)
	}
	status := func(resource string, patch string) {
		t.Helper()
		kubectl("patch", resource, "desktop-1", "--subresource=status", "--type=merge", "-p", patch)
	}
	status("pod", `{"status":{"podIP":"10.244.0.7","podIPs":[{"ip":"10.244.0.7"}]}}`)
	condition := func(conditionType, status, reason string) string {
		return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-03-01T09:00:00Z"}`, conditionType, status, reason)
	}
	conditions := strings.Join([]string{
		condition(spec.ConditionRunning, "True", spec.ReasonVMBooted), condition(spec.ConditionUserLoggedIn, "True", spec.ReasonLoggedIn),
	}, ",")
	_, err = client.Resource(machineResource).Namespace("default").Patch(ctx, "desktop-1", types.MergePatchType,
		[]byte(`{"status":{"loggedInUser":"ann","conditions":[`+conditions+`]}}`), metav1.PatchOptions{FieldManager: names.RunnerStatusManager}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text := out.String()
	password := ""
	for line := range strings.SplitSeq(text, "\n") {
		if p, ok := strings.CutPrefix(line, "password="); ok {
			password = p
		}
	}
	want := "[virt-viewer]\ntype=spice\nhost=10.244.0.7\nport=5900\npassword=" + password + "\ntitle=desktop-1\ndelete-this-file=1\n"
	if text != want || len(password) != 24 {
		t.Errorf("%s", text)
	}
	vm, err := get[spec.VirtualMachine](ctx, &s, machineResource, "desktop-1")
	if err != nil {
		t.Fatal(err)
	}
	if vm.Status.ConsoleUser != "ann" || vm.Status.Assignment.Pool != "students" {
		t.Errorf("%+v", vm.Status)
	}
}
