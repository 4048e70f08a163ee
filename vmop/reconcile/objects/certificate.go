package objects

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// certificateTime is the lifetime of a certificate. It is replaced when a third of that is
	// left.
	certificateTime = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of viewers may be behind.
	clockSkew = time.Hour
	// maxCertificates bounds how many a machine has at a time, so that repeated changes do not
	// fill the cluster. Each is valid for a year.
	maxCertificates = 8
	// maxCertificate is the longest certificate that is parsed, in bytes.
	maxCertificate = 16 << 10
	// maxCommonName is X.509's limit, in bytes.
	maxCommonName = 64
)

// Certificates is the state of the certificates that the operator creates for a machine.
type Certificates struct {
	// Secret is the name of the Secret in use; empty if none is valid now for all names of the
	// display.
	Secret string
	// Due is when it is to be replaced.
	Due time.Time
	// Free is a name for the Secret with the next one; empty if there are too many.
	Free string
}

// Certificate is what to create in a Secret; whoever executes a plan gets it as
// [reconcile.Certificate].
//
// [reconcile.Certificate]: https://pkg.go.dev/github.com/vmop/sdk/vmop/reconcile#Certificate
type Certificate struct {
	CommonName          string
	Hosts               []string
	NotBefore, NotAfter time.Time
}

// PickCertificate judges the Secrets with certificates of a machine, see [spec.DisplayTLS]. Of
// Secrets that are not the machine's only the names count. Secrets are never changed: a
// certificate is replaced by one of another name, and the old one is deleted with the machine.
func PickCertificate(vm *spec.VirtualMachine, secrets []corev1.Secret, now time.Time) Certificates {
	var out Certificates
	var end time.Time
	taken := map[string]bool{}
	for i := range secrets {
		s := &secrets[i]
		taken[s.Name] = true
		if !ownCertificate(vm, s) {
			continue
		}
		c := parsed(s.Data[corev1.TLSCertKey])
		if c == nil || now.Before(c.NotBefore) || !now.Before(c.NotAfter) || !covers(c, certificateHosts(vm)) {
			continue
		}
		if c.NotAfter.After(end) || c.NotAfter.Equal(end) && s.Name < out.Secret {
			end = c.NotAfter
			out.Secret, out.Due = s.Name, c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/3)
		}
	}
	out.Free = DisplayCertificateName(vm.Name)
	for n := 2; taken[out.Free]; n++ {
		if n > maxCertificates {
			out.Free = ""
			break
		}
		out.Free = DisplayCertificateName(vm.Name) + "-" + strconv.Itoa(n)
	}
	return out
}

func ownCertificate(vm *spec.VirtualMachine, s *corev1.Secret) bool {
	return s.Labels[names.LabelComponent] == names.ComponentDisplayCertificate &&
		slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == vm.UID })
}

// NewCertificate returns a Secret without its data, and the certificate to create for it.
func NewCertificate(vm *spec.VirtualMachine, s Settings, name string, now time.Time) (*corev1.Secret, Certificate) {
	o := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: objectMeta(vm, &s), Type: corev1.SecretTypeTLS,
	}
	o.Name, o.Labels[names.LabelComponent] = name, names.ComponentDisplayCertificate
	subject := vm.Name
	if len(subject) > maxCommonName {
		subject = subject[:maxCommonName] // names of machines are ASCII
	}
	return o, Certificate{
		CommonName: subject, Hosts: certificateHosts(vm),
		NotBefore: now.Add(-clockSkew).UTC().Truncate(time.Second), NotAfter: now.Add(certificateTime).UTC().Truncate(time.Second),
	}
}

// certificateHosts returns the names by which viewers may reach the display: those of service and
// pod in the cluster, tunnels to it, and the server that the manifest names.
func certificateHosts(vm *spec.VirtualMachine) []string {
	of := fmt.Sprintf("%s.%s", vm.Name, vm.Namespace)
	hosts := []string{vm.Name, of, of + ".svc", of + ".svc.cluster.local", "localhost", "127.0.0.1", "::1"}
	if s := vm.Spec.VM.Display.Spice; s != nil && s.Server != "" && !slices.Contains(hosts, s.Server) {
		hosts = append(hosts, s.Server)
	}
	return slices.DeleteFunc(hosts, func(h string) bool {
		return net.ParseIP(h) == nil && len(validation.IsDNS1123Subdomain(h)) > 0
	})
}

func covers(c *x509.Certificate, hosts []string) bool {
	for _, h := range hosts {
		if c.VerifyHostname(h) != nil {
			return false
		}
	}
	return true
}

func parsed(data []byte) *x509.Certificate {
	block := firstBlock(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

func firstBlock(data []byte) *pem.Block {
	if len(data) > maxCertificate {
		return nil
	}
	block, _ := pem.Decode(bytes.TrimSpace(data))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	return block
}

// CondenseCertificate returns what [PickCertificate] needs of a Secret: the server's certificate,
// which is public, and no key.
func CondenseCertificate(data map[string][]byte) map[string][]byte {
	if block := firstBlock(data[corev1.TLSCertKey]); block != nil {
		return map[string][]byte{corev1.TLSCertKey: pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})}
	}
	return nil
}
