package objects

import (
	"slices"
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The user data of a manifest is in a Secret of the machine, which its pod mounts. The operator
// has no right to change or delete Secrets: other user data is another Secret, and each is owned
// by an empty ConfigMap, with which Kubernetes' garbage collector deletes it.

// maxUserData bounds how many of them a machine has at a time. Usually there is one, briefly two.
const maxUserData = 16

// UserData is the state of the Secrets with the user data of a machine's manifest.
type UserData struct {
	// Secret is the name of the one with the present user data; empty if there is none.
	Secret string
	// Holder is the ConfigMap that owns it, or is to own it; nil if there is none.
	Holder *corev1.ConfigMap
	// Free is the name of the next object to create: of the Secret, if there is a Holder, else of
	// that. It is empty if nothing is missing, or all names are taken.
	Free string
}

// PickUserData finds the Secret with the user data of a machine's manifest. Of objects that are
// not the machine's only the names count.
func PickUserData(vm *spec.VirtualMachine, secrets []corev1.Secret, holders []corev1.ConfigMap) UserData {
	text := vm.Spec.InlineUserData()
	if text == "" {
		return UserData{}
	}
	taken, occupied := map[string]bool{}, map[string]bool{}
	for i := range secrets {
		taken[secrets[i].Name], occupied[secrets[i].Name] = true, true
	}
	var free *corev1.ConfigMap
	for i := range holders {
		h := &holders[i]
		taken[h.Name] = true
		if !holdsUserData(vm, h) || h.DeletionTimestamp != nil {
			continue
		}
		if slices.ContainsFunc(secrets, func(s corev1.Secret) bool { return hasUserData(&s, h, text) }) {
			return UserData{Secret: h.Name, Holder: h}
		}
		if free == nil && !occupied[h.Name] {
			free = h
		}
	}
	if free != nil {
		return UserData{Holder: free, Free: free.Name}
	}
	for n := 1; n <= maxUserData; n++ {
		name := spec.UserDataSecret(vm.Name)
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !taken[name] {
			return UserData{Free: name}
		}
	}
	return UserData{}
}

func holdsUserData(vm *spec.VirtualMachine, h *corev1.ConfigMap) bool {
	return IsUserDataHolder(vm.Name, h) && slices.ContainsFunc(h.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == vm.UID })
}

// IsUserDataHolder reports whether a ConfigMap serves only to own a Secret with user data of a
// machine of a name, existing or deleted: it is empty.
func IsUserDataHolder(vmName string, h *corev1.ConfigMap) bool {
	return h.Labels[names.LabelComponent] == names.ComponentUserData && h.Labels[names.LabelInstance] == vmName &&
		len(h.Data) == 0 && len(h.BinaryData) == 0
}

func hasUserData(s *corev1.Secret, h *corev1.ConfigMap, text string) bool {
	return s.Name == h.Name && s.DeletionTimestamp == nil && len(s.OwnerReferences) == 1 && s.OwnerReferences[0].UID == h.UID &&
		s.Immutable != nil && *s.Immutable && string(s.Data[spec.UserDataKey]) == text
}

// UserDataHolder returns the ConfigMap that is to own a Secret of its name.
func UserDataHolder(vm *spec.VirtualMachine, s Settings, name string) *corev1.ConfigMap {
	h := BareConfigMap(vm, &s)
	h.Name, h.Labels[names.LabelComponent] = name, names.ComponentUserData
	delete(h.Annotations, names.AnnotationOperator) // the machine's ConfigMap has it
	return h
}

// UserDataSecret returns the Secret with the user data of a machine's manifest. It never changes.
func UserDataSecret(vm *spec.VirtualMachine, s Settings, holder *corev1.ConfigMap) *corev1.Secret {
	o := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: objectMeta(vm, &s), Type: names.SecretTypeCloudInit,
		Immutable: new(true), Data: map[string][]byte{spec.UserDataKey: []byte(vm.Spec.InlineUserData())},
	}
	o.Name, o.Labels[names.LabelComponent] = holder.Name, names.ComponentUserData
	o.OwnerReferences = nil
	if holder.UID != "" {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: names.KindConfigMap, Name: holder.Name, UID: holder.UID}}
	}
	return o
}

// CondenseUserData returns what [PickUserData] needs of a Secret.
func CondenseUserData(data map[string][]byte) map[string][]byte {
	if text := data[spec.UserDataKey]; len(text) > 0 && len(text) <= limits.MaxInlineUserData {
		return map[string][]byte{spec.UserDataKey: text}
	}
	return nil
}
