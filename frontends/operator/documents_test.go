package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a runner finds of a Secret waits for a restart, which comes by itself where it
// needs nobody's approval.
func TestNewContentOfASecretWaitsForARestart(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	k := t.startKubelet()
	t.start(cluster.Kubeconfig())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web-init"}, StringData: map[string]string{"userData": "#cloud-config"}}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.create(strings.Replace(machine("one", "Running"), "spec:\n", "spec:\n  cloudInit: {userDataFrom: {secretRef: {name: web-init}}}\n", 1))
	t.phase("one", spec.PhaseRunning)
	first := t.podUID("one")
	tell := func(changed bool) {
		k.mu.Lock()
		k.changed["one"] = changed
		k.mu.Unlock()
	}
	tell(true)
	if err := k.report(t.Context(), "one", true); err != nil {
		t.Fatal(err)
	}
	t.eventually("the change waits", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		all := vm.Status.RestartAwaitingChanges
		if !spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionAwaitingRestart) || len(all) != 1 || all[0].Path != "spec.cloudInit.userDataFrom" || all[0].Message == "" {
			return fmt.Errorf("%+v", vm.Status)
		}
		return nil
	})
	if t.podUID("one") != first {
		t.Error("it was restarted without approval")
	}
	tell(false) // the next runner gives the guest what there is
	patch := []byte(`{"spec":{"disruptions":{"restartApprovalMode":"Automatic"}}}`)
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	t.eventually("it runs in a new pod, and nothing waits", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionAwaitingRestart); vm.Status.Phase != spec.PhaseRunning || t.podUID("one") == first ||
			c.Status != metav1.ConditionFalse || len(vm.Status.RestartAwaitingChanges) > 0 || len(vm.Status.ChangedDocuments) > 0 {
			return fmt.Errorf("%+v", vm.Status)
		}
		return nil
	})
}
