package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/console"
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

// A name that no Secret can have is one mistake of the manifest, which is told as such; client-go
// does not even ask the API server for such an object.
func TestCertificateOfNoName(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.start(cluster.Kubeconfig())
	refused := map[string]string{"slash": "a/b", "percent": "%", "dot": ".", "dots": ".."}
	for vm, secret := range refused {
		t.create(encrypted(vm, fmt.Sprintf("secretName: %q", secret)))
	}
	for vm := range refused {
		t.waits(vm, spec.ConditionConfigurationApplied, spec.ReasonInvalidSpecification)
	}
}

// The operator makes a certificate where the manifest asks for one: once, beside what
// somebody else has under the name, without a word about the key.
func TestCertificateIsMade(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one-display-tls"}, StringData: map[string]string{"mine": "mine"}}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := t.start(cluster.Kubeconfig())
	t.create(encrypted("one", "generateSecret: true"))
	t.phase("one", spec.PhaseRunning)
	secret, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "one-display-tls-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || pod.Annotations[names.AnnotationCertificate] != secret.Name {
		t.Errorf("the pod has %q, %v", pod.Annotations, err)
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "one." + t.namespace + ".svc"}); err != nil {
		t.Error(err)
	}
	vm, err := t.status("one")
	if err != nil || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != vm.UID {
		t.Errorf("the Secret is of %+v, %v", secret.OwnerReferences, err)
	}
	place, err := console.Locate(vm, pod, console.SPICE, "")
	if err != nil || place.TLSSecret != secret.Name {
		t.Errorf("viewers are told of %q, %v", place.TLSSecret, err)
	}
	if other, err = t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "one-display-tls", metav1.GetOptions{}); err != nil || string(other.Data["mine"]) != "mine" || len(other.Data) != 1 {
		t.Errorf("what was there is %v, %v", other.Data, err)
	}
	log := o.log.String()
	o.stop()
	o = t.start(cluster.Kubeconfig())
	t.reconciled(o, 1)
	all, err := t.kube.CoreV1().Secrets(t.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: names.LabelComponent + "=" + names.ComponentDisplayCertificate})
	if err != nil || len(all.Items) != 1 {
		t.Errorf("there are %d certificates, %v", len(all.Items), err)
	}
	key := strings.Split(string(secret.Data["tls.key"]), "\n")[1]
	for _, e := range t.eventsOf() {
		log += e.Note
	}
	if log += o.log.String(); strings.Contains(log, key) || strings.Contains(log, "PRIVATE KEY") {
		t.Error("the key is told")
	}
}

// Either a Secret is named or one is made.
func TestEitherSecretOrCertificate(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	for _, tls := range []string{"secretName: a, generateSecret: true", "generateSecret: false", ""} {
		_, err := t.vms.Create(t.Context(), t.object(encrypted("one", tls)), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "either secretName or generateSecret must be given") {
			t.Errorf("{%s}: %v", tls, err)
		}
	}
}
