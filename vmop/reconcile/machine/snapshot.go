package machine

import (
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is all that a decision about one machine depends on. A nil pointer means known to be
// absent: if an object cannot be read, that is an error and there is no snapshot. Nothing in it
// is changed.
type Snapshot struct {
	// VM is the machine as it is stored.
	VM *spec.VirtualMachine
	// Bare says that VM has only metadata, because the rest cannot be decoded; it is for a
	// machine that is being deleted. For any other see [Unreadable].
	Bare bool
	// Authors are those of the machine's status: what others wrote is not believed.
	Authors Authors
	// Settings are the operator's.
	Settings objects.Settings
	// Now is the time of the observation.
	Now time.Time
	// Pods are the pods of the namespace that have the machine's labels, the name of its next one
	// ([objects.PodName]) or a disk in common with it or its Attachments ([SharesDisks]), whoever
	// made them. Their roles follow from this.
	Pods []corev1.Pod
	// PortPods are pods, of any namespace, that take a port of a node which the pod waits for,
	// see [ContendedPorts].
	PortPods []corev1.Pod
	// ConfigMap and Service are the objects of the machine's name.
	ConfigMap *corev1.ConfigMap
	Service   *corev1.Service
	// DisplaySecrets are the secrets with the labels of a display secret of the machine, under
	// whatever names.
	DisplaySecrets []corev1.Secret
	// SecretInTheWay has the name of the machine's next display secret but not its labels; nil if
	// there is none, or none was noticed yet. See [CondenseForeign].
	SecretInTheWay *metav1.ObjectMeta
	// Certificates are the Secrets with certificates that the operator has created for the
	// display of a machine of this name, and others that have a name which the next one would
	// have.
	Certificates []corev1.Secret
	// Certificate is the Secret with the display's certificate that the manifest names, if needed
	// to start the machine, see [NamedCertificate]. It is not watched, and read for that alone.
	Certificate *corev1.Secret
	// UserData are the Secrets that the operator has created from the user data of a machine of
	// this name, and UserDataHolders the ConfigMaps that own them; with others that have a name
	// which the next one would have, see [objects.PickUserData].
	UserData        []corev1.Secret
	UserDataHolders []corev1.ConfigMap
	// Secrets are the states, by name, of the Secrets that the guest is provisioned from, if
	// needed to start the machine, see [NeededSecrets]. They are not watched, and their content
	// is not read. One that is not here is missing.
	Secrets map[string]SecretState
	// Claims are the existing [UsedClaims] of the machine and its Attachments.
	Claims []corev1.PersistentVolumeClaim
	// Mentioned are those of [MadeClaims] that the manifest of another machine of the namespace
	// mentions, or may: one that cannot be decoded counts. Needed only for a machine whose disks
	// are deleted with it, see [DeletesDisks].
	Mentioned []string
	// ImageRepository is the claim of the namespace's image repository, if the machine may use
	// it; see [machineconfig.MayUseRepository].
	ImageRepository *corev1.PersistentVolumeClaim
	// Pool is the pool that the machine is assigned from.
	Pool *spec.VmPool
	// Classes are the class that the machine names, or else all that are marked as default.
	// ClassProblem is why a named one was not read.
	Classes      []spec.VirtualMachineClass
	ClassProblem string
	// Attachments are those that name the machine, see
	// [spec.VirtualMachineBlockDeviceAttachment].
	Attachments []spec.VirtualMachineBlockDeviceAttachment
	// Failures are writes that the API server refused, until the same write succeeds. Conflicts,
	// and objects that exist already or no longer, are none: they mean that the snapshot was old.
	Failures []reconcile.Failure
	// Password is a random password for the display, used if the machine needs one.
	Password string
}

// SecretState is what is known of a Secret whose content only the runner reads: a list of
// metadata by name and type suffices.
type SecretState int

const (
	// SecretMissing: there is none of the name.
	SecretMissing SecretState = iota
	// SecretOfOtherType: it has none of the wanted types.
	SecretOfOtherType
	// SecretThere: it is as wanted, as far as its type shows.
	SecretThere
)
