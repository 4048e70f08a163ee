package reconcile

import (
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names that clusters already contain: VM-Operator's. Objects are found and
// taken over by them, so they never change.
const (
	// LabelName, LabelInstance, LabelManagedBy and LabelComponent are the keys
	// of the labels that Kubernetes recommends.
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelComponent = "app.kubernetes.io/component"

	// AppName is the value of LabelName on all objects.
	AppName = "vm-runner"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "vm-operator"
	// ComponentRunner is the value of LabelComponent on pods.
	ComponentRunner = "vm-runner"
	// ComponentDisplaySecret is the value of LabelComponent on the secrets with
	// display passwords. The label is what makes a secret one, not its name.
	ComponentDisplaySecret = "display-secret"

	// AnnotationVersion names the version of the operator that wrote an object.
	AnnotationVersion = GroupPrefix + "version"
	// AnnotationConfigVersion is the resource version of the ConfigMap on a
	// pod. Changing it makes the kubelet bring mounted files up to date at once
	// rather than within a minute or two.
	AnnotationConfigVersion = "vmrunner.jdrupes.org/cmVersion"
	// AnnotationDisplayVersion does the same for the display secret.
	AnnotationDisplayVersion = "vmrunner.jdrupes.org/dpVersion"
	// GroupPrefix begins the keys of annotations of the API group.
	GroupPrefix = spec.GroupName + "/"

	// ServiceAccount is the account of the machines' pods.
	ServiceAccount = "vm-runner"
	// ImageRepositoryClaim is the claim of the image repository in each
	// namespace.
	ImageRepositoryClaim = "vmop-image-repository"

	// ConfigKey and LoggingKey are the keys of the ConfigMap.
	ConfigKey  = "config.yaml"
	LoggingKey = "logging.properties"
	// PasswordKey and PasswordExpiryKey are the keys of a display secret.
	PasswordKey       = "display-password"
	PasswordExpiryKey = "password-expiry"

	// SPICEPortName is the name of the display's port of pod and service.
	SPICEPortName = "spice"
	// VNCPortName and WebsocketPortName are those of VNC's ports. (Added by
	// vmop.)
	VNCPortName       = "vnc"
	WebsocketPortName = "vnc-websocket"
)

// UnknownVersion stands for the version of an operator that has none.
const UnknownVersion = "(Unknown)"

// DisplaySecretName is the name of the display secret that the operator makes.
func DisplaySecretName(vmName string) string { return vmName + "-display-secret" }

// InstanceLabels are the labels of all objects of a machine except its display
// secret.
func InstanceLabels(vmName string) map[string]string {
	return map[string]string{LabelName: AppName, LabelInstance: vmName, LabelManagedBy: ManagedBy}
}

// objectMeta is the metadata that ConfigMap, pod and service share.
func objectMeta(vm *spec.VirtualMachine, s *Settings) metav1.ObjectMeta {
	version := s.Version
	if version == "" {
		version = UnknownVersion
	}
	no := false
	m := metav1.ObjectMeta{
		Name:        vm.Name,
		Namespace:   vm.Namespace,
		Labels:      InstanceLabels(vm.Name),
		Annotations: map[string]string{AnnotationVersion: version},
	}
	// Only a machine that is stored in a cluster can own something.
	if vm.UID != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine,
			Name: vm.Name, UID: vm.UID, Controller: &no,
		}}
	}
	return m
}
