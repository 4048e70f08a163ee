package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A machine waits without a pod for the Secret that its guest is provisioned from, also
// while there is one of another type, which the API server tells without its content;
// it starts by itself when the right one is there.
func TestProvisioningThatComesLater(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(strings.Replace(machine("one", "Running"), "spec:\n", "spec:\n  provisioning: {type: UserDataRef, userDataRef: {kind: Secret, name: init}}\n", 1))
	says := func(want string) {
		t.eventually("it says "+want, func() error {
			vm, err := t.status("one")
			if err != nil {
				return err
			}
			if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionProvisioningReady); c == nil || c.Reason != spec.ReasonProvisioningNotReady || !strings.Contains(c.Message, want) {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	}
	says("Secret init of spec.provisioning.userDataRef does not exist")
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a pod (%v)", err)
	}
	secrets := t.kube.CoreV1().Secrets(t.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "init"}, StringData: map[string]string{"userData": "#cloud-config"}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("has another type than vmoperator.jdrupes.org/cloud-init")
	if err := secrets.Delete(t.Context(), "init", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	secret.Type = names.SecretTypeCloudInit
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
}
