package attachment

import (
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Snapshot is all that a decision about one attachment depends on. A pointer that is nil
// means known to be absent. Nothing in it is changed.
type Snapshot struct {
	// Attachment is the attachment as it is stored.
	Attachment *spec.VirtualMachineBlockDeviceAttachment
	// Unreadable says why Attachment has nothing but its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Machine is the machine that it names, with a status that is to be believed, and
	// MachineUnreadable why there is none although one is stored. Pod is the machine's pod:
	// while there is a connection with one that has not ended that one, whichever is the
	// active one by now (package machine has PodWith).
	Machine           *spec.VirtualMachine
	MachineUnreadable string
	Pod               *corev1.Pod
	// Disk is the disk that it names, if it names one, and Claim the volume claim.
	Disk  *spec.VirtualDisk
	Claim *corev1.PersistentVolumeClaim
	// Key and Exporter are the Secret and the pod that have the name [objects.ExportPod],
	// whoever made them.
	Key      *corev1.Secret
	Exporter *corev1.Pod
	// Users are further pods that have the claim and have not ended.
	Users []corev1.Pod
	// Others are further attachments of the claim, or of the machine.
	Others []spec.VirtualMachineBlockDeviceAttachment
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}
