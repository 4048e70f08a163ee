package objects

import (
	"encoding/base64"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WantsDisplaySecret reports whether the operator creates a display secret for the machine, which
// must have its defaults, if there is none.
func WantsDisplaySecret(vm *spec.VirtualMachine) bool {
	return slices.ContainsFunc(vm.Spec.VM.Display.Servers(), func(s spec.DisplayServer) bool { return s.GenerateSecret })
}

// DisplaySecret holds the password of the machine's display. It is created before a console is
// requested, and is unusable until its expiry is set.
//
// Like a claim it has no owner: it outlives the machine, and an existing one is never
// overwritten. Without a password the secret has none, for output, or to apply beside an
// operator.
func DisplaySecret(vm *spec.VirtualMachine, password string) *corev1.Secret {
	data := map[string]string{names.PasswordExpiryKey: "now"}
	if password != "" {
		data[names.PasswordKey] = password
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      DisplaySecretName(vm.Name),
			Namespace: vm.Namespace,
			Labels:    map[string]string{names.LabelName: names.AppName, names.LabelInstance: vm.Name, names.LabelComponent: names.ComponentDisplaySecret},
		},
		Type:       corev1.SecretTypeOpaque,
		StringData: data,
	}
}

// Password returns the display password made of random bytes, as in VM-Operator.
func Password(random [16]byte) string { return base64.StdEncoding.EncodeToString(random[:]) }

// UsedDisplaySecret returns the name of the display secret of a machine, which must have its
// defaults: of an existing one, see [PickDisplaySecret], or of the one the operator creates. It
// is empty if the display has no password.
func UsedDisplaySecret(vm *spec.VirtualMachine, secrets []corev1.Secret) string {
	if picked := PickDisplaySecret(vm.Name, secrets); picked != nil {
		return picked.Name
	}
	if WantsDisplaySecret(vm) {
		return DisplaySecretName(vm.Name)
	}
	return ""
}

// OpensDisplay reports whether the runner of a machine, which must have its defaults, is to admit
// any client that reaches its display: it has no password, and the administrator allows that.
func OpensDisplay(vm *spec.VirtualMachine, s *Settings, secrets []corev1.Secret) bool {
	return s.Allowed.openDisplay() && UsedDisplaySecret(vm, secrets) == ""
}

// PickDisplaySecret returns the display secret that a machine uses, of those that have its
// labels, in any order: the one with the operator's name, else the first by name; nil if there
// are none.
func PickDisplaySecret(vmName string, secrets []corev1.Secret) *corev1.Secret {
	var picked *corev1.Secret
	own := DisplaySecretName(vmName)
	for i := range secrets {
		s := &secrets[i]
		if picked == nil || s.Name == own || picked.Name != own && s.Name < picked.Name {
			picked = s
		}
	}
	return picked
}
