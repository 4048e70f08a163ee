package objects

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const unknownVersion = "(Unknown)"

// DisplaySecretName returns the name of the display secret that the operator creates.
func DisplaySecretName(vmName string) string { return vmName + "-display-secret" }

// DisplayCertificateName returns the name of the first Secret that the operator creates with a
// certificate for the display; see [PickCertificate].
func DisplayCertificateName(vmName string) string { return vmName + "-display-tls" }

// InstanceLabels returns the labels of all objects of a machine except its display secret.
func InstanceLabels(vmName string) map[string]string {
	return lacking(nil, instanceLabels(vmName))
}

func instanceLabels(vmName string) []label {
	return []label{{names.LabelName, names.AppName}, {names.LabelInstance, vmName}, {names.LabelManagedBy, names.ManagedBy}}
}

type label struct{ key, value string }

func lacking(has map[string]string, labels []label) map[string]string {
	var out map[string]string
	for _, l := range labels {
		out = lack(out, has, l.key, l.value)
	}
	return out
}

func lack(out, has map[string]string, key, value string) map[string]string {
	if got, ok := has[key]; ok && got == value {
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// PodName returns the name of the next pod of a machine. Existing pods are identified by their
// properties and UIDs, not by this name. As it is the same for each start, the API server refuses
// a second pod.
func PodName(vmName string) string { return vmName }

func objectMeta(vm *spec.VirtualMachine, s *Settings) metav1.ObjectMeta {
	version := s.Version
	if version == "" {
		version = unknownVersion
	}
	m := metav1.ObjectMeta{
		Name:        vm.Name,
		Namespace:   vm.Namespace,
		Labels:      InstanceLabels(vm.Name),
		Annotations: map[string]string{names.AnnotationVersion: version},
	}
	// Only a machine that is stored in a cluster can be an owner.
	if vm.UID != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: names.Group + "/" + names.Version, Kind: spec.KindVirtualMachine,
			Name: vm.Name, UID: vm.UID, Controller: new(false),
		}}
	}
	return m
}
