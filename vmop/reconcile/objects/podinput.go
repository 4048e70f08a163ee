package objects

import (
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	corev1 "k8s.io/api/core/v1"
)

// PodInput is what the pod depends on besides manifest and settings.
type PodInput struct {
	// Disks are the machine's disks, see [machineconfig.Disks], with the actual names of their
	// claims.
	Disks []machineconfig.Disk
	// RunnerDataClaim is the name of the runner's data volume claim; empty means that of
	// [RunnerDataClaim].
	RunnerDataClaim string
	// VolumeModes are the modes of existing claims of disks, by name; see
	// [machineconfig.Options]. Both must agree.
	VolumeModes map[string]corev1.PersistentVolumeMode
	// DisplaySecret is the name of the machine's display secret; empty if it has none.
	DisplaySecret string
	// Certificate is the name of the Secret with the certificate that the operator has created
	// for the display, see [PickCertificate]; empty means that of the first.
	Certificate string
	// UserData is the name of the Secret with the user data of the manifest, see [PickUserData];
	// empty means that of the first.
	UserData string
	// TakeOver: files on the runner's data volume may be those of VM-Operator's runner, which was
	// root; see [Settings.TakeOverData].
	TakeOver bool
	// DeviceGroups are the groups of the node's devices that the machine's last runner has found;
	// see [spec.VirtualMachineStatus]. They are only for unprivileged pods, which have no devices
	// but their own: in a pod with all devices of its node, a lying runner would get access to
	// the node's disks.
	DeviceGroups []int64
	// ConfigVersion is the resource version of the ConfigMap, for an annotation; empty if it is
	// not known.
	ConfigVersion string
	// ImageRepository mounts the image repository also for a machine that names no file in it;
	// see [machineconfig.MayUseRepository].
	ImageRepository bool
	// Limited gives the pod limits, which a quota of its namespace requires.
	Limited bool
}

// RunnerUser is the user and the group of the runner and of QEMU in a pod. No user of a node
// should have this number; volumes are made accessible to the group.
const RunnerUser = 65532
