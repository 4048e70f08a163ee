package objects

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownVersion stands for the version of an operator that has none.
const unknownVersion = "(Unknown)"

// DisplaySecretName is the name of the display secret that the operator makes.
func DisplaySecretName(vmName string) string { return vmName + "-display-secret" }

// DisplayCertificateName is the name of the first Secret that the operator makes with a
// certificate for the display; see [PickCertificate].
func DisplayCertificateName(vmName string) string { return vmName + "-display-tls" }

// InstanceLabels are the labels of all objects of a machine except its display
// secret.
func InstanceLabels(vmName string) map[string]string {
	return lacking(nil, instanceLabels(vmName))
}

// instanceLabels has what [InstanceLabels] has.
func instanceLabels(vmName string) []label {
	return []label{{names.LabelName, names.AppName}, {names.LabelInstance, vmName}, {names.LabelManagedBy, names.ManagedBy}}
}

type label struct{ key, value string }

// lacking are the labels that a map has not, or has otherwise; nil if there are none.
func lacking(has map[string]string, labels []label) map[string]string {
	var out map[string]string
	for _, l := range labels {
		out = lack(out, has, l.key, l.value)
	}
	return out
}

// lack adds an entry to those that a map lacks, if it does.
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

// PodName is the name of the pod that a machine gets. Pods are known by what they are and
// by their UIDs, not by this: whoever has a pod asks it for its name. That it is the same
// for each start lets the API server refuse a second one.
func PodName(vmName string) string { return vmName }

// objectMeta is the metadata that ConfigMap, pod and service share.
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
	// Only a machine that is stored in a cluster can own something.
	if vm.UID != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: names.Group + "/" + names.Version, Kind: spec.KindVirtualMachine,
			Name: vm.Name, UID: vm.UID, Controller: new(false),
		}}
	}
	return m
}
