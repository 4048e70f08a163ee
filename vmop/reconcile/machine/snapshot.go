package machine

import (
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is all that a decision about one machine depends on. A pointer that
// is nil means known to be absent: whoever could not read an object has an error
// and makes no snapshot. Nothing in it is changed.
type Snapshot struct {
	// VM is the machine as it is stored.
	VM *spec.VirtualMachine
	// Bare says that VM has nothing but its metadata, because the rest cannot be
	// understood: this is for a machine that is being deleted. [Unreadable] is for
	// any other.
	Bare bool
	// Authors are those of the machine's status: what others wrote is not believed.
	Authors Authors
	// Settings are the operator's.
	Settings objects.Settings
	// Now is the time of the observation.
	Now time.Time
	// Pods are the pods of the namespace that carry the machine's labels, have the name
	// of its next one ([objects.PodName]) or share a disk with it or its Attachments
	// ([SharesDisks]), whoever made them. What each is to the machine follows from it.
	Pods []corev1.Pod
	// PortPods are pods, of any namespace, that take a port of a node which the pod
	// waits for, see [ContendedPorts].
	PortPods []corev1.Pod
	// ConfigMap and Service are the objects of the machine's name.
	ConfigMap *corev1.ConfigMap
	Service   *corev1.Service
	// DisplaySecrets are the secrets with the labels of a display secret of the
	// machine, under whatever names.
	DisplaySecrets []corev1.Secret
	// SecretInTheWay has the name that the machine's display secret would have, and
	// not its labels; nil if there is none, or none was noticed yet. See
	// [CondenseForeign].
	SecretInTheWay *metav1.ObjectMeta
	// Certificates are the Secrets with certificates that the operator has made for
	// the display of a machine of this name, and others that have a name which the
	// next one would have.
	Certificates []corev1.Secret
	// Certificate is the Secret with the certificate of the display that the manifest
	// names, if that is needed to start the machine, see [NamedCertificate]. It is read
	// for that alone: nobody watches it.
	Certificate *corev1.Secret
	// UserData are the Secrets that the operator has made of the user data of the manifest
	// of a machine of this name, and UserDataHolders the ConfigMaps that own them; with
	// others that have a name which the next one would have, see [objects.PickUserData].
	UserData        []corev1.Secret
	UserDataHolders []corev1.ConfigMap
	// Secrets are the states of the Secrets that the guest is provisioned from, by their
	// names, if they are needed to start the machine, see [NeededSecrets]. Nobody
	// watches them, and nobody reads what is in them. One that is not here is missing.
	Secrets map[string]SecretState
	// Claims are those of the [UsedClaims] of the machine and its Attachments that there are.
	Claims []corev1.PersistentVolumeClaim
	// Mentioned are those of [MadeClaims] that another machine of the namespace
	// mentions in its manifest, or may do: one that cannot be understood counts. Only
	// a machine whose disks are deleted with it needs them, see [DeletesDisks].
	Mentioned []string
	// ImageRepository is the claim of the namespace's image repository, if the
	// machine may use it; see [machineconfig.MayUseRepository].
	ImageRepository *corev1.PersistentVolumeClaim
	// Pool is the pool that the machine is assigned from.
	Pool *spec.VmPool
	// Classes are the class that the machine names, or if it names none all that are
	// marked as the default. ClassProblem says why one that it names was not looked at.
	Classes      []spec.VirtualMachineClass
	ClassProblem string
	// Attachments are those that name the machine, see
	// [spec.VirtualMachineBlockDeviceAttachment].
	Attachments []spec.VirtualMachineBlockDeviceAttachment
	// Failures are writes that the API server refused, until the same write
	// succeeds. Conflicts and objects that exist already or no more are none:
	// they mean that the snapshot was old.
	Failures []reconcile.Failure
	// Password is a random password that becomes that of the display if the
	// machine needs one.
	Password string
}

// SecretState is what is known of a Secret that only the runner reads: whoever asks
// the API server for the metadata of those of a name and a type need not be shown
// what is in them.
type SecretState int

const (
	// SecretMissing: there is none of the name.
	SecretMissing SecretState = iota
	// SecretOfOtherType: it is of none of the wanted types.
	SecretOfOtherType
	// SecretThere: it is as wanted, as far as its type tells.
	SecretThere
)
