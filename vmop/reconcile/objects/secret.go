package objects

import (
	"encoding/base64"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WantsDisplaySecret reports whether the operator makes a display secret for the
// machine, which must have its defaults, if there is none.
func WantsDisplaySecret(vm *spec.VirtualMachine) bool {
	return slices.ContainsFunc(vm.Spec.VM.Display.Servers(), func(s spec.DisplayServer) bool { return s.GenerateSecret })
}

// DisplaySecret holds the password of the machine's display. It is made before a console is
// requested, and cannot be used until it is given another expiry.
//
// Like a claim it has no owner: it outlives the machine, and one that exists is never overwritten.
// Without a password the secret has none, for display, or to apply beside an operator.
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

// Password is the display password that random bytes make, as VM-Operator makes
// them.
func Password(random [16]byte) string { return base64.StdEncoding.EncodeToString(random[:]) }

// UsedDisplaySecret is the name of the display secret of a machine, which must
// have its defaults: that of one that there is, see [PickDisplaySecret], or of
// the one that the operator makes because there is none. It is empty if the
// display has no password.
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
// any client that reaches its display: there is no password for it, and the administrator allows
// that.
func OpensDisplay(vm *spec.VirtualMachine, s *Settings, secrets []corev1.Secret) bool {
	return s.Allowed.openDisplay() && UsedDisplaySecret(vm, secrets) == ""
}

// PickDisplaySecret returns the display secret that a machine uses of those that
// have its labels, whatever their order: the one that the operator would make,
// else the first by name; nil of none.
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
