package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// NamedCertificate returns the name of the Secret that [Snapshot.Certificate] must hold: for a
// machine that is to start, or that changes are about to restart, with TLS on its display. It is
// empty if none need be read. pod is [Snapshot.Pod].
func NamedCertificate(vm *spec.VirtualMachine, pod *corev1.Pod) string {
	if pod != nil && !looksAhead(vm) || staysStopped(vm) || vm.DeletionTimestamp != nil || vm.Spec.VM.Display == nil || vm.Spec.VM.Display.TLS == nil || !encrypts(manifest.Defaulted(vm)) {
		return ""
	}
	return vm.Spec.VM.Display.TLS.SecretName
}

// encrypts reports whether a machine, with defaults applied, has a display that needs a
// certificate; one on a UNIX socket does not.
func encrypts(vm *spec.VirtualMachine) bool {
	d := vm.Spec.VM.Display
	return d.TLS != nil && slices.ContainsFunc(d.Servers(), func(s spec.DisplayServer) bool { return !s.OnSocket })
}

// MakesCertificate reports whether the operator creates the certificate of a machine's display,
// so that a [Snapshot] of it needs Certificates.
func MakesCertificate(vm *spec.VirtualMachine) bool {
	d := vm.Spec.VM.Display
	return d != nil && d.TLS != nil && d.TLS.GenerateSecret
}

func (d *decision) findCertificate() {
	switch {
	case !encrypts(d.vm):
	case d.vm.Spec.VM.Display.TLS.GenerateSecret:
		d.makeCertificate()
	default:
		d.awaitCertificate()
	}
}

// makeCertificate creates a certificate where none is valid, and renews it in time for a machine
// that should run: the new one is used from the next start.
func (d *decision) makeCertificate() {
	c := objects.PickCertificate(d.vm, d.s.Certificates, d.s.Now)
	d.certificate = c.Secret
	if c.Secret == "" {
		d.unmade = true
	}
	switch {
	case c.Secret == "" && !d.wanted() && len(d.s.Certificates) > 0:
	case c.Secret != "" && (!d.wanted() || d.s.Now.Before(c.Due)):
		if d.wanted() {
			d.wakeAt(c.Due)
		}
	case c.Free == "":
		first := objects.DisplayCertificateName(d.vm.Name)
		if d.configuration.setProblem(spec.ReasonNameTaken, named(names.KindSecret, first),
			"all names for certificates of the display, from Secret %s on, are taken; delete those that no pod uses (%s=%s)", first, names.LabelComponent, names.ComponentDisplayCertificate) {
			d.configuration.further = ": none of them is good now for all names of the display"
		}
	default:
		secret, certificate := objects.NewCertificate(d.vm, d.s.Settings, c.Free, d.s.Now)
		d.do(reconcile.Create{Object: secret, Certificate: new(reconcile.Certificate(certificate))}, &d.configuration)
	}
}

func (d *decision) formerCertificate() {
	was := d.pod.pod.Annotations[names.AnnotationCertificate]
	if was == "" || d.certificate == "" || was == d.certificate {
		return
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{
		Operation: spec.OperationReplace, Path: "spec.vm.display.tls.generateSecret",
		CurrentValue: extension(fmt.Appendf(nil, "%q", was)), DesiredValue: extension(fmt.Appendf(nil, "%q", d.certificate)),
	})
}

// awaitCertificate keeps a machine from being started without the certificate of its display: its
// pod would fail repeatedly.
func (d *decision) awaitCertificate() {
	if d.pod.state != podAbsent || !d.wanted() {
		return
	}
	name := d.vm.Spec.VM.Display.TLS.SecretName
	lacks := missingKeys(d.s.Certificate)
	if len(lacks) == 0 {
		return
	}
	d.unmade = true
	what := "does not exist"
	if d.s.Certificate != nil {
		what = "lacks " + strings.Join(lacks, " and ")
	}
	if d.configuration.setProblem(spec.ReasonTLSSecretMissing, named(names.KindSecret, name),
		"Secret %s of spec.vm.display.tls.secretName %s; the machine is started when it has %s and %s", name, what, corev1.TLSCertKey, corev1.TLSPrivateKeyKey) {
		d.configuration.further = ", and " + names.CertificateAuthorityKey + " if the authority has a certificate of its own"
	}
	d.wakeAt(d.s.Now.Add(d.secretPause(spec.ConditionConfigurationApplied, spec.ReasonTLSSecretMissing)))
}

func missingKeys(s *corev1.Secret) []string {
	var lacks []string
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if s == nil || len(s.Data[key]) == 0 {
			lacks = append(lacks, key)
		}
	}
	return lacks
}
