package machinetest

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// certificateSecret is a Secret with something under the keys.
func certificateSecret(keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "desk-tls"}, Data: map[string][]byte{}}
	for _, k := range keys {
		s.Data[k] = []byte("-----BEGIN")
	}
	return s
}

func encrypted(vm *spec.VirtualMachine) {
	vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{}, TLS: &spec.DisplayTLS{SecretName: "desk-tls"}}
	spec.Default(vm)
}

// Without the certificate of its display a machine is not started, and says what is
// missing; with it, an authority's or not, it is at once.
func TestCertificateIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		secret *corev1.Secret
		lacks  string
	}{
		"no Secret":    {nil, "Secret desk-tls of spec.vm.display.tls.secretName does not exist"},
		"empty":        {&corev1.Secret{}, "lacks tls.crt and tls.key"},
		"no key":       {certificateSecret("tls.crt", "ca.crt"), "lacks tls.key"},
		"an empty key": {&corev1.Secret{Data: map[string][]byte{"tls.crt": {1}, "tls.key": {}}}, "lacks tls.key"},
		"no authority": {certificateSecret("tls.crt", "tls.key"), ""},
		"whole":        {certificateSecret("tls.crt", "tls.key", "ca.crt"), ""},
	} {
		w := fair()
		vm := get[*spec.VirtualMachine](w, theVM)
		encrypted(vm)
		w.put(theVM, vm)
		if c.secret != nil {
			w.put("certificate/desk-tls", c.secret)
		}
		for range 10 {
			w.work()
			w.pass(time.Second)
		}
		started := get[*corev1.Pod](w, thePod) != nil
		said := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionPodReady)
		switch {
		case c.lacks == "" && (!started || said.Reason != spec.ReasonPodRunning):
			t.Errorf("%s: not started: %+v", name, said)
		case c.lacks != "" && (started || said.Reason != spec.ReasonTLSSecretMissing || !strings.Contains(said.Message, c.lacks)):
			t.Errorf("%s: started: %v; %+v", name, started, said)
		case c.lacks != "":
			// It is there now.
			w.put("certificate/desk-tls", certificateSecret("tls.crt", "tls.key"))
			w.work()
			if get[*corev1.Pod](w, thePod) == nil {
				t.Errorf("%s: not started when the Secret is there", name)
			}
		}
	}
}

// A machine that runs, one that is stopped, and one whose display has no port need no
// certificate, and nobody reads any.
func TestCertificatesThatNobodyNeeds(t *testing.T) {
	pod := &corev1.Pod{}
	for name, c := range map[string]struct {
		change func(*spec.VirtualMachine)
		pod    *corev1.Pod
		want   string
	}{
		"to start": {encrypted, nil, "desk-tls"},
		"it runs":  {encrypted, pod, ""},
		"stopped":  {func(vm *spec.VirtualMachine) { encrypted(vm); vm.Spec.VM.State = spec.StateStopped }, nil, ""},
		"kept by rules": {func(vm *spec.VirtualMachine) {
			encrypted(vm)
			vm.Spec.VM.State, vm.Spec.RunPolicy = spec.StateStopped, spec.RunPolicyAlwaysOn
		}, nil, "desk-tls"},
		"no display": {func(vm *spec.VirtualMachine) { vm.Spec.VM.Display = nil }, nil, ""},
		"in clear":   {func(vm *spec.VirtualMachine) { encrypted(vm); vm.Spec.VM.Display.TLS = nil }, nil, ""},
		"on a socket": {func(vm *spec.VirtualMachine) {
			encrypted(vm)
			vm.Spec.VM.Display.Spice, vm.Spec.VM.Display.VNC = nil, &spec.VNC{UnixSocket: true}
		}, nil, ""},
	} {
		vm := get[*spec.VirtualMachine](fair(), theVM)
		c.change(vm)
		if got := machine.NamedCertificate(vm, c.pod); got != c.want {
			t.Errorf("%s: %q is read, want %q", name, got, c.want)
		}
	}
}

// The longer a Secret is missing, the rarer it is looked for; and never later than
// after a minute.
func TestPausesBetweenLooksForACertificate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		since := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(48*time.Hour)).Draw(t, "since"))
		w := fair()
		vm := get[*spec.VirtualMachine](w, theVM)
		encrypted(vm)
		vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
			Type: spec.ConditionConfigurationApplied, Status: metav1.ConditionFalse, Reason: spec.ReasonTLSSecretMissing, LastTransitionTime: metav1.NewTime(w.now.Add(-since))})
		w.put(theVM, vm)
		w.observeAll()
		pause := w.decided(nil).Wake.Sub(w.now)
		if want := min(max(since/8, time.Second), time.Minute); pause <= 0 || pause > want {
			t.Fatalf("looked for again after %v, missing for %v", pause, since)
		}
	})
}

// Nothing of a Secret that somebody else made is kept.
func TestCondensedCertificate(t *testing.T) {
	s := certificateSecret("tls.crt", "tls.key", "ca.crt", "other")
	s.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "BEGIN"}
	for _, data := range machine.CondenseCertificate(s).Data {
		if len(data) > 1 {
			t.Errorf("%q is kept", data)
		}
	}
	if c := machine.CondenseCertificate(s); len(c.Annotations) > 0 {
		t.Errorf("%v are kept", c.Annotations)
	}
}

// made is a world whose machine runs with a certificate that was made for it.
func made(t *testing.T) *world {
	t.Helper()
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	encrypted(vm)
	vm.Spec.VM.Display.TLS = &spec.DisplayTLS{GenerateSecret: true}
	w.put(theVM, vm)
	w.rounds(10)
	if pod := get[*corev1.Pod](w, thePod); pod == nil || pod.Annotations[names.AnnotationCertificate] != "web-display-tls" {
		t.Fatalf("the pod is %+v", pod)
	}
	return w
}

func (w *world) rounds(n int) {
	for range n {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
}

// A certificate is there before the pod, whose it is; it is made once, and goes with
// the machine.
func TestCertificateIsMade(t *testing.T) {
	w := made(t)
	secret := get[*corev1.Secret](w, "secret/web-display-tls")
	vm := get[*spec.VirtualMachine](w, theVM)
	if secret.Type != corev1.SecretTypeTLS || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != vm.UID {
		t.Errorf("the Secret is %+v", secret.ObjectMeta)
	}
	block, _ := pem.Decode(secret.Data["tls.crt"])
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	for _, host := range []string{"web", "web.apps", "web.apps.svc", "web.apps.svc.cluster.local", "localhost", "127.0.0.1"} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: w.now}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	p := w.decided(nil)
	if want := c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3); len(p.Actions) > 0 || !p.Wake.Equal(want) {
		t.Errorf("it goes on with %v, and looks again at %v, want %v", targets(p), p.Wake, want)
	}
}

// A certificate is replaced in time: the machine that runs is not disturbed, says that
// its restart has another one, and the next pod has it.
func TestCertificateIsRenewed(t *testing.T) {
	w := made(t)
	w.pass(w.decided(nil).Wake.Sub(w.now) + time.Second)
	w.rounds(10)
	pod, vm := get[*corev1.Pod](w, thePod), get[*spec.VirtualMachine](w, theVM)
	if get[*corev1.Secret](w, "secret/web-display-tls-2") == nil || pod.Annotations[names.AnnotationCertificate] != "web-display-tls" {
		t.Fatalf("the pod has %s", pod.Annotations[names.AnnotationCertificate])
	}
	if a := vm.Status.RestartAwaitingChanges; len(a) != 1 || a[0].Path != "spec.vm.display.tls.generateSecret" || string(a[0].DesiredValue.Raw) != `"web-display-tls-2"` {
		t.Errorf("what waits is %+v", a)
	}
	if p := w.decided(nil); len(p.Actions) > 0 {
		t.Errorf("it goes on with %v", targets(p))
	}
	for _, state := range []spec.MachineState{spec.StateStopped, spec.StateRunning} {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.State, vm.Generation = state, vm.Generation+1
		w.put(theVM, vm)
		w.rounds(30)
	}
	pod = get[*corev1.Pod](w, thePod)
	if pod == nil || pod.Annotations[names.AnnotationCertificate] != "web-display-tls-2" || !strings.Contains(fmt.Sprint(pod.Spec.Volumes), "web-display-tls-2") {
		t.Fatalf("the pod is %+v", pod)
	}
}

// Who writes into the Secrets, has others of their names, or names more and more
// servers, does not fill the cluster with certificates.
func TestCertificatesAreBounded(t *testing.T) {
	w := made(t)
	for range 20 {
		for _, k := range w.keys("secret/web-display-tls") {
			if s := get[*corev1.Secret](w, k); s != nil {
				s.Data = map[string][]byte{"tls.crt": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}
				w.put(k, s)
			}
		}
		w.rounds(3)
	}
	if n := len(w.keys("secret/web-display-tls")); n > 8 {
		t.Errorf("there are %d", n)
	}
	if c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionConfigurationApplied); c.Reason != spec.ReasonNameTaken {
		t.Errorf("nobody is told: %+v", c)
	}

	other := fair()
	vm := get[*spec.VirtualMachine](other, theVM)
	encrypted(vm)
	vm.Spec.VM.Display.TLS = &spec.DisplayTLS{GenerateSecret: true}
	other.put(theVM, vm)
	other.put("secret/web-display-tls", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web-display-tls"}, Data: map[string][]byte{"tls.crt": []byte("mine")}})
	other.observeAll()
	other.rounds(10)
	if pod := get[*corev1.Pod](other, thePod); pod == nil || pod.Annotations[names.AnnotationCertificate] != "web-display-tls-2" {
		t.Errorf("beside a Secret of somebody else: %+v", pod)
	}
	if s := get[*corev1.Secret](other, "secret/web-display-tls"); string(s.Data["tls.crt"]) != "mine" {
		t.Error("it was overwritten")
	}
}

// A certificate that its issuer has renewed waits for a restart, and stops nobody's
// guest by itself; one that the operator makes does so by the pod's note of it, which the
// cache of pods keeps.
func TestRenewedCertificateWaits(t *testing.T) {
	for name, c := range map[string]struct {
		tls     spec.DisplayTLS
		missing bool
		waits   string
		remark  string
	}{
		"named":          {spec.DisplayTLS{SecretName: "desk"}, false, "spec.vm.display.tls.secretName", ""},
		"named, gone":    {spec.DisplayTLS{SecretName: "desk"}, true, "", "spec.vm.display.tls.secretName: the Secret desk, or the key in it, is not there any more"},
		"the operator's": {spec.DisplayTLS{GenerateSecret: true}, false, "", ""},
	} {
		w := newWorld(func(string, int) int { return 0 }, decideOnLess)
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{}, TLS: &c.tls}
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		spec.Default(vm)
		w.put(theVM, vm)
		w.put("certificate/desk", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Data: map[string][]byte{"tls.crt": {1}, "tls.key": {1}}})
		w.rounds(10)
		pod := get[*corev1.Pod](w, thePod)
		if pod == nil || w.guests[pod.UID] == nil {
			t.Fatalf("%s: the machine does not run", name)
		}
		vm = get[*spec.VirtualMachine](w, theVM)
		vm.Status.ChangedDocuments = []spec.ChangedDocument{{Name: spec.DocumentDisplayCertificate, Missing: c.missing}}
		w.put(theVM, vm)
		w.rounds(5)
		vm = get[*spec.VirtualMachine](w, theVM)
		waits := ""
		for _, a := range vm.Status.RestartAwaitingChanges {
			waits += a.Path
		}
		if waits != c.waits || w.podUID() != pod.UID {
			t.Errorf("%s: %q waits, want %q; the pod is %s, was %s", name, waits, c.waits, w.podUID(), pod.UID)
		}
		if applied := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied); !strings.Contains(applied.Message, c.remark) {
			t.Errorf("%s: %s", name, applied.Message)
		}
	}
}

// What the cache keeps of a pod says which certificate it has.
func TestRenewedCertificateIsSeenInTheCache(t *testing.T) {
	w := made(t)
	w.pass(w.decided(nil).Wake.Sub(w.now) + time.Second)
	w.rounds(5)
	s, _ := w.snapshot()
	if whole, kept := machine.Decide(s), machine.Decide(condensed(s)); !reflect.DeepEqual(whole, kept) || len(s.VM.Status.RestartAwaitingChanges) != 1 {
		t.Errorf("with whole objects\n%+v\nwith what is kept\n%+v", whole, kept)
	}
}
