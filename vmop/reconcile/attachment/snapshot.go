package attachment

import (
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Snapshot is all that a decision about one attachment depends on. A nil pointer means known to
// be absent. Nothing in it is changed.
type Snapshot struct {
	// Attachment is the attachment as it is stored.
	Attachment *spec.VirtualMachineBlockDeviceAttachment
	// Unreadable is why Attachment has only its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Machine is the machine that it names, with a trusted status, and MachineUnreadable why
	// there is none although one is stored. Pod is the machine's pod: while the connection is
	// with a pod that has not ended, that one, whichever is active by now (see PodWith in package
	// machine).
	Machine           *spec.VirtualMachine
	MachineUnreadable string
	Pod               *corev1.Pod
	// Disk is the disk that it names, if it names one, and Claim the volume claim.
	Disk  *spec.VirtualDisk
	Claim *corev1.PersistentVolumeClaim
	// Key and Exporter are the Secret and the pod with the name [objects.ExportPod], whoever
	// created them.
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
