package objects_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func displayed(server string) *spec.VirtualMachine {
	vm := &spec.VirtualMachine{}
	vm.Name, vm.Namespace, vm.UID = "desk", "lab", "uid-1"
	vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{Server: server}, TLS: &spec.DisplayTLS{GenerateSecret: true}}
	spec.Default(vm)
	return vm
}

// Of the certificates that were made the one counts that is good now for all names and
// lasts longest, and whatever the clock says, what is decided is bounded and agrees
// with what would be made.
func TestPickCertificate(t *testing.T) {
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		vm := displayed(rapid.SampledFrom([]string{"", "desk.example.org", "192.0.2.1", "not a name"}).Draw(t, "server"))
		var secrets []corev1.Secret
		for range rapid.IntRange(0, 4).Draw(t, "certificates") {
			at := begin.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "hours")) * time.Hour)
			secret, c := objects.NewCertificate(vm, objects.Settings{}, objects.PickCertificate(vm, secrets, at).Free, at)
			data, err := displaycert.Make((*reconcile.Certificate)(&c))
			if err != nil {
				t.Fatal(err)
			}
			secret.Data = objects.CondenseCertificate(data)
			if rapid.IntRange(0, 4).Draw(t, "of another machine") == 0 {
				secret.OwnerReferences[0].UID = "uid-0"
			}
			secrets = append(secrets, *secret)
		}
		now := begin.Add(time.Duration(rapid.IntRange(-1000, 40_000).Draw(t, "now")) * time.Hour)
		got := objects.PickCertificate(vm, secrets, now)
		if slices.ContainsFunc(secrets, func(s corev1.Secret) bool { return s.Name == got.Free }) || got.Free == "" {
			t.Fatalf("the next one would be %q beside %d", got.Free, len(secrets))
		}
		_, next := objects.NewCertificate(vm, objects.Settings{}, got.Free, now)
		data, err := displaycert.Make((*reconcile.Certificate)(&next))
		if err != nil {
			t.Fatal(err)
		}
		made := corev1.Secret{Data: data}
		made.Name, made.Labels = got.Free, map[string]string{names.LabelComponent: names.ComponentDisplayCertificate}
		made.OwnerReferences = []metav1.OwnerReference{{UID: vm.UID}}
		after := objects.PickCertificate(vm, append(secrets, made), now)
		if after.Secret == "" || !after.Due.After(now) {
			t.Fatalf("with a new one: %+v at %v", after, now)
		}
		if got.Secret != "" && after.Secret != got.Free && got.Due.Before(now) {
			t.Fatalf("%s is due since %v, and stays beside a new one", got.Secret, got.Due)
		}
	})
}

// A server that viewers are sent to is one of the names, and another one needs another
// certificate.
func TestCertificateOfAServer(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, server := range []string{"desk.example.org", "192.0.2.1", "2001:db8::1"} {
		secret, c := objects.NewCertificate(displayed(server), objects.Settings{}, "desk-display-tls", now)
		if !slices.Contains(c.Hosts, server) {
			t.Errorf("%s is none of %q", server, c.Hosts)
		}
		data, err := displaycert.Make((*reconcile.Certificate)(&c))
		if err != nil {
			t.Fatal(err)
		}
		secret.Data = data
		if got := objects.PickCertificate(displayed(server), []corev1.Secret{*secret}, now); got.Secret != secret.Name {
			t.Errorf("%s: %+v", server, got)
		}
		if got := objects.PickCertificate(displayed("other.example.org"), []corev1.Secret{*secret}, now); got.Secret != "" {
			t.Errorf("%s is taken for other.example.org", got.Secret)
		}
	}
	// What is no name is none, rather than a certificate that cannot be made.
	_, c := objects.NewCertificate(displayed("a b"), objects.Settings{}, "x", now)
	for _, h := range c.Hosts {
		if h == "a b" || h == "" || net.ParseIP(h) == nil && h != "localhost" && h[:4] != "desk" {
			t.Errorf("%q", h)
		}
	}
}

// Anybody may write anything into the Secrets: it is looked at as far as a certificate
// is long, and is none.
func FuzzCertificate(f *testing.F) {
	_, c := objects.NewCertificate(displayed(""), objects.Settings{}, "x", time.Now())
	data, err := displaycert.Make((*reconcile.Certificate)(&c))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data["tls.crt"])
	f.Add(data["ca.crt"])
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, crt []byte) {
		kept := objects.CondenseCertificate(map[string][]byte{"tls.crt": crt, "tls.key": []byte("secret")})
		if len(kept["tls.key"]) > 0 || len(kept["tls.crt"]) > 32<<10 {
			t.Fatalf("%d bytes are kept", len(kept["tls.crt"]))
		}
		if again := objects.CondenseCertificate(kept); string(again["tls.crt"]) != string(kept["tls.crt"]) {
			t.Fatalf("%q, and once more %q", kept, again)
		}
		s := corev1.Secret{Data: map[string][]byte{"tls.crt": crt}}
		s.Name, s.Labels = "desk-display-tls", map[string]string{names.LabelComponent: names.ComponentDisplayCertificate}
		s.OwnerReferences = []metav1.OwnerReference{{UID: "uid-1"}}
		whole := objects.PickCertificate(displayed(""), []corev1.Secret{s}, time.Now())
		s.Data = kept
		if less := objects.PickCertificate(displayed(""), []corev1.Secret{s}, time.Now()); less.Secret != whole.Secret {
			t.Fatalf("%+v, and of what is kept %+v", whole, less)
		}
	})
}
