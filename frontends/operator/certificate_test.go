package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encrypted is a machine whose display has the certificate that tls says.
func encrypted(name, tls string) string {
	return strings.Replace(machine(name, "Running"), "{port: 5900}}", "{port: 5900}, tls: {"+tls+"}}", 1)
}

// A machine waits for the Secret with its display's certificate without a pod, says
// which, and goes on when it is there, whoever issues it without an authority.
func TestCertificateThatComesLater(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(encrypted("one", "secretName: desk-tls"))
	t.waits("one", spec.ConditionPodReady, spec.ReasonTLSSecretMissing)
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
	if c == nil || c.Reason != spec.ReasonTLSSecretMissing || !strings.Contains(c.Message, "desk-tls") || !strings.Contains(c.Message, "tls.crt and tls.key") {
		t.Errorf("the condition is %+v", c)
	}
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a pod (%v)", err)
	}
	// One with an empty key is what an issuer may make at first.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "desk-tls"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": {}, "tls.key": []byte("key")}}
	if secret, err = t.kube.CoreV1().Secrets(t.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.eventually("the missing key is named", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied); c == nil || !strings.Contains(c.Message, "lacks tls.crt;") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	secret.Data["tls.crt"] = []byte("certificate")
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
}
