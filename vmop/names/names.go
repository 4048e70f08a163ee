// Package names defines the names that several programs share: labels, kinds and
// annotations of Kubernetes objects, keys of what is in them, and the owners of
// their fields. Each is written here and nowhere else.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package names

// The API of vmop.
const (
	// Group is the API group of its kinds.
	Group = "vmoperator.jdrupes.org"
	// Version is the only version of the group.
	Version = "v1"
	// KindVirtualMachine, KindVMPool, KindOperation, KindClass, KindDisk, KindImage,
	// KindClusterImage and KindAttachment are its kinds, ResourceVirtualMachines,
	// ResourceVMPools, ResourceOperations, ResourceClasses, ResourceDisks,
	// ResourceImages, ResourceClusterImages and ResourceAttachments their plural names in
	// URLs.
	KindVirtualMachine      = "VirtualMachine"
	KindVMPool              = "VmPool"
	KindOperation           = "VirtualMachineOperation"
	KindClass               = "VirtualMachineClass"
	KindDisk                = "VirtualDisk"
	KindImage               = "VirtualImage"
	KindClusterImage        = "ClusterVirtualImage"
	KindAttachment          = "VirtualMachineBlockDeviceAttachment"
	ResourceVirtualMachines = "vms"
	ResourceVMPools         = "vmpools"
	ResourceOperations      = "virtualmachineoperations"
	ResourceClasses         = "virtualmachineclasses"
	ResourceDisks           = "virtualdisks"
	ResourceImages          = "virtualimages"
	ResourceClusterImages   = "clustervirtualimages"
	ResourceAttachments     = "virtualmachineblockdeviceattachments"
)

// The snapshots of volumes, which are no part of Kubernetes itself: their group and
// version, and its kinds. A VolumeSnapshot is what people have in a namespace, a
// VolumeSnapshotContent what a driver has made for it.
const (
	SnapshotGroup             = "snapshot.storage.k8s.io"
	SnapshotVersion           = "v1"
	KindVolumeSnapshot        = "VolumeSnapshot"
	KindVolumeSnapshotContent = "VolumeSnapshotContent"
)

// The types of Secrets that guests are provisioned from. A machine of Deckhouse's
// brings along those of its group.
const (
	SecretTypeCloudInit          = GroupPrefix + "cloud-init"
	SecretTypeSysprep            = GroupPrefix + "sysprep"
	SecretTypeCloudInitDeckhouse = "provisioning.virtualization.deckhouse.io/cloud-init"
	SecretTypeSysprepDeckhouse   = "provisioning.virtualization.deckhouse.io/sysprep"
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

	// ComponentDisplayCertificate is the same on those with certificates of displays
	// that the operator has made.
	ComponentDisplayCertificate = "display-certificate"

	// ComponentUserData is the same on the Secrets with user data of manifests, and on
	// the ConfigMaps that own them.
	ComponentUserData = "user-data"

	// ComponentAttachment is the same on the Secrets with the keys of pods that export
	// disks.
	ComponentAttachment = "block-device-attachment"

	// ComponentImageKey is the same on the Secrets with the keys of pods that serve an
	// image of the cluster, and of those that copy it.
	ComponentImageKey = "image-key"
	// ComponentTransfer is the same on the Secrets with the keys of uploads and downloads.
	ComponentTransfer = "disk-transfer"

	// AnnotationVersion names the version of the operator that wrote an object.
	AnnotationVersion = GroupPrefix + "version"
	// AnnotationConfigVersion is the resource version of the ConfigMap on a
	// pod. Changing it makes the kubelet bring mounted files up to date at once
	// rather than within a minute or two.
	AnnotationConfigVersion = "vmrunner.jdrupes.org/cmVersion"
	// AnnotationRefreshed is changed, on a pod, for the same reason while its runner
	// does not follow a change: the kubelet may have read an old ConfigMap, as after
	// an outage of the API server. Its value is the resource version of the
	// ConfigMap, how often it was changed since the pod was told of that, and when
	// it was changed last.
	AnnotationRefreshed = GroupPrefix + "refreshed"
	// AnnotationDisplayVersion does what AnnotationConfigVersion does for the
	// display secret.
	AnnotationDisplayVersion = "vmrunner.jdrupes.org/dpVersion"
	// AnnotationCertificate names, on a pod, the Secret with the certificate of its
	// display, if the operator has made that.
	AnnotationCertificate = GroupPrefix + "display-certificate"
	// AnnotationUserData names, on a pod, the Secret that the operator has made of the
	// user data of its machine's manifest.
	AnnotationUserData = GroupPrefix + "user-data"
	// GroupPrefix begins the keys of annotations of the API group.
	GroupPrefix = Group + "/"

	// ServiceAccount is the account of the machines' pods.
	ServiceAccount = "vm-runner"
	// OperatorBinding is the role binding that lets the operator make machines in a
	// namespace, and ClaimsBinding the one that lets it delete their disks.
	OperatorBinding = "vmop-machines-operator"
	ClaimsBinding   = "vmop-claims-operator"
	// ImageRepositoryClaim is the claim of the image repository in each
	// namespace.
	ImageRepositoryClaim = "vmop-image-repository"

	// FormerImage is what VM-Operator's definition stores in a manifest that names no image. Stored
	// machines have it, as have the records of what they were started with. A manifest without an
	// image is still taken to have it, so that nothing changes for a machine with or without it.
	FormerImage = "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:latest"

	// ConfigKey and LoggingKey are the keys of the ConfigMap.
	ConfigKey  = "config.yaml"
	LoggingKey = "logging.properties"
	// PasswordKey and PasswordExpiryKey are the keys of a display secret.
	PasswordKey       = "display-password"
	PasswordExpiryKey = "password-expiry"
	// CertificateAuthorityKey is the key of the authority's certificate in a Secret
	// with a certificate, as cert-manager makes them beside those that Kubernetes
	// names (tls.crt, tls.key).
	CertificateAuthorityKey = "ca.crt"

	// SPICEPortName is the name of the display's port of pod and service.
	SPICEPortName = "spice"
	// VNCPortName and WebsocketPortName are those of VNC's ports. (Added by
	// vmop.)
	VNCPortName       = "vnc"
	WebsocketPortName = "vnc-websocket"
)

const (
	// FieldManager owns the fields of the objects that are applied. It is the name under which
	// VM-Operator wrote them, so that a field that is no longer applied is removed after a
	// takeover.
	FieldManager = "kubernetes-java-kubectl-apply"
	// OperatorStatusManager owns the operator's fields of the status.
	OperatorStatusManager = "vmop-operator"
	// RunnerStatusManager owns the runner's fields of the status. The operator
	// writes in its name what a runner that is gone can no longer report.
	RunnerStatusManager = "vmop-runner"
	// AssignmentManager owns status.assignment.
	AssignmentManager = "vmop-assignment"
	// RunnerController is the source of the runner's events. It is VM-Operator's.
	RunnerController = Group + "/vm-runner"
	// AnnotationApplied is a digest of what was last applied to an object. With
	// another digest there may be fields to remove, which only another apply
	// does. On a pod it is a digest of what was created.
	AnnotationApplied = GroupPrefix + "applied"
	// AnnotationContent on the ConfigMap is a digest of its content as it was
	// applied.
	AnnotationContent = GroupPrefix + "content"
	// AnnotationDocuments on the ConfigMap says which documents for cloud-init
	// are in it: a digest of them as the manifest has them, and one of all else
	// that it was made from. While both are the same, they are not parsed.
	AnnotationDocuments = GroupPrefix + "documents"
	// AnnotationResetRequest on a machine asks for a reset of its guest. Each
	// new value, such as the time, is one reset. On the ConfigMap it is the
	// last value that was counted.
	AnnotationResetRequest = GroupPrefix + "reset-request"
	// AnnotationForceStop on a machine that is being stopped or deleted skips the rest of the
	// guest's orderly shutdown: QEMU is made to quit at once. Each new value, such as the time, is
	// a request, for the pod of that moment only; it stops nothing by itself. On a pod it is the
	// value that was there when the pod was made, which is not a request for it.
	AnnotationForceStop = GroupPrefix + "force-stop"
	// AnnotationDefaultClass, which is "true", marks a class as that of the machines
	// that name none.
	AnnotationDefaultClass = GroupPrefix + "is-default-class"
	// AnnotationNewDisk on a machine requests an empty disk in place of one whose claim is gone:
	// the name of the disk, a colon and the first eight characters of the UID of the claim that is
	// gone (status.claims has both), or several of these, separated by commas. It is thus valid for
	// one loss only.
	AnnotationNewDisk = GroupPrefix + "new-disk"
	// AnnotationPowerRequest on a machine asks for it to be started, stopped or
	// restarted: one of these words (start, stop, restart), then a space and what
	// makes it another value than the one before, such as the time. start and stop
	// are for machines with a run policy; without one they are written to
	// spec.vm.state. On a pod it is the value that was there when the pod was made:
	// a restart asks for the end of a pod that has another one.
	AnnotationPowerRequest = GroupPrefix + "power-request"
	// AnnotationOrphaned on a pod means that its machine was deleted without it (--cascade=orphan):
	// the UID of the machine, a space, and the pod's own UID, which no copy of the pod has. A new
	// machine of the name may take over such a pod.
	AnnotationOrphaned = GroupPrefix + "orphaned"
	// AnnotationAdopted on a pod is the UID of the machine that has taken it over, a
	// space, and since when.
	AnnotationAdopted = GroupPrefix + "adopted"
	// AnnotationPassedOn on a pod lists the labels and annotations that it was given from its
	// machine, as JSON.
	AnnotationPassedOn = GroupPrefix + "passed-on"
	// FinalizerMachine keeps a machine that is being deleted visible until its pod
	// has ended.
	FinalizerMachine = GroupPrefix + "vm-cleanup"
	// FinalizerOperation keeps an operation that has begun visible until its request
	// is carried out or taken back.
	FinalizerOperation = GroupPrefix + "operation-cleanup"
	// FinalizerDisk keeps a disk that is being deleted visible, and with it its volume
	// claim, while a machine uses it.
	FinalizerDisk = GroupPrefix + "disk-protection"
	// FinalizerImage does the same for an image, of a namespace or of the cluster, which
	// pods may be copying, too.
	FinalizerImage = GroupPrefix + "image-protection"
	// FinalizerAttachment keeps an attachment that is being deleted visible until its
	// machine has released the disk.
	FinalizerAttachment = GroupPrefix + "vmbda-cleanup"
	// LabelAttachment on the pod that exports a disk, and on the Secret with its key, is
	// the name of the attachment.
	LabelAttachment = GroupPrefix + "attachment"
	// AnnotationExportsTo on such a pod is for whom it was made: the name of the machine,
	// the UID of its pod, and the fingerprint of the key of the runner in it, with spaces
	// between them.
	AnnotationExportsTo = GroupPrefix + "exports-to"
	// AnnotationAttached on the pod of a machine is which volumes it has for attachments, in
	// JSON: the claim, whether that is a block device, and the UID of the attachment.
	AnnotationAttached = GroupPrefix + "attached"
	// LabelDisk on the pod that fills a disk, and on the disk's volume claim, is the
	// name of the disk.
	LabelDisk = GroupPrefix + "virtual-disk"
	// LabelImage is LabelDisk for an image: only the pod that fills a claim with this label writes
	// to it.
	LabelImage = GroupPrefix + "virtual-image"
	// LabelClusterImage is LabelImage for an image of the cluster.
	LabelClusterImage = GroupPrefix + "cluster-virtual-image"
	// AnnotationFilled on a disk's volume claim is the UID of the disk, once the disk
	// is in the claim. Nothing is written to such a claim any more but by machines. On
	// that of an image it is the UID of the image.
	AnnotationFilled = GroupPrefix + "filled"
	// AnnotationToBeFilled on a disk's volume claim that is a block device means that the disk is
	// still to be written to it, until AnnotationFilled is there. (For a file, the lack of that
	// annotation means it.) It is the UID of the disk.
	AnnotationToBeFilled = GroupPrefix + "to-be-filled"
	// AnnotationCloneOf on a disk's or image's volume claim is the UID of the disk or
	// image of whose claim its volume is to be a clone, and AnnotationCloned whether it
	// turned out to be one, or its content was copied: true or false.
	AnnotationCloneOf = GroupPrefix + "clone-of"
	AnnotationCloned  = GroupPrefix + "cloned"
	// AnnotationRestoreOf on a disk's volume claim is the UID of the VolumeSnapshot that its
	// volume is to be restored from, and AnnotationSnapshotDriver the driver that has made
	// the snapshot: nobody else can restore it.
	AnnotationRestoreOf      = GroupPrefix + "restore-of"
	AnnotationSnapshotDriver = GroupPrefix + "snapshot-driver"
	// AnnotationDiskFormat on such a claim is the format of the disk's file: raw or
	// qcow2, or iso for an image that is a CD.
	AnnotationDiskFormat = GroupPrefix + "disk-format"
	// AnnotationImageSize on an image's claim is how large a disk it is for a guest, and
	// AnnotationStoredSize what it takes of the volume, both in bytes.
	AnnotationImageSize  = GroupPrefix + "image-size"
	AnnotationStoredSize = GroupPrefix + "image-stored-size"
	// AnnotationImageDigest is the SHA-256 digest of the file of an image of the cluster,
	// in hexadecimal digits, and AnnotationImageLength its length in bytes.
	AnnotationImageDigest = GroupPrefix + "image-sha256"
	AnnotationImageLength = GroupPrefix + "image-length"
	// LabelImageServer on a pod that serves an image of the cluster is the name of that,
	// and AnnotationServesTo for whom it does: kind, namespace and name, and UID of a disk
	// or image, and the fingerprint of the key of the pod that fills that, with spaces
	// between them.
	LabelImageServer   = GroupPrefix + "image-server"
	AnnotationServesTo = GroupPrefix + "serves-to"
	// AnnotationUploadRequest on a disk or an image whose source is an upload is a value
	// that was not used before: somebody wants to upload now. Each is answered once, by a
	// pod, which has it too. AnnotationDownloadRequest is the same for a download.
	AnnotationUploadRequest   = GroupPrefix + "upload-request"
	AnnotationDownloadRequest = GroupPrefix + "download-request"
	// AnnotationResetCounter on the ConfigMap is its resetCounter.
	AnnotationResetCounter = GroupPrefix + "reset-counter"
	// AnnotationGeneration on the ConfigMap is the generation of the machine
	// that it was made from. It stays behind while the machine is stopped.
	AnnotationGeneration = GroupPrefix + "generation"
	// AnnotationGuestResetEnds on the ConfigMap is its guestResetEnds, if that is
	// true. It stays behind while the machine is stopped.
	AnnotationGuestResetEnds = GroupPrefix + "guest-reset-ends"
	// AnnotationInstanceID on the ConfigMap is the last instance-id in it.
	AnnotationInstanceID = GroupPrefix + "instance-id"
	// AnnotationOrigin on the claim with the runner's data is the program that made the machine:
	// vmop or vm-operator. It is written once.
	AnnotationOrigin = GroupPrefix + "origin"
	// AnnotationMadeFor on a claim, a display secret or a pod is the UID of the machine
	// that it was made for. Nothing but the making of one writes it, or the taking over
	// of a pod: without it no claim or secret is deleted.
	AnnotationMadeFor = GroupPrefix + "made-for"
	// AnnotationDataOwner on a pod is the user to whom it gives the files that
	// VM-Operator's runner wrote, before its own runner starts. On the ConfigMap it
	// is the user to whom a pod has given them. VM-Operator, should it come back,
	// writes the ConfigMap without it.
	AnnotationDataOwner = GroupPrefix + "data-owner"
	// AnnotationOperator on the ConfigMap names the operator that manages the machine.
	// AnnotationOperatorClaim is another one that manages it too, and the time at which it asked
	// whether the first is still there; AnnotationOperatorAnswer repeats the claim to which that
	// one has answered.
	AnnotationOperator       = GroupPrefix + "operator"
	AnnotationOperatorClaim  = GroupPrefix + "operator-claim"
	AnnotationOperatorAnswer = GroupPrefix + "operator-answer"
	// AnnotationStarted on a pod is the part of the machine's specification
	// that it was started with and cannot follow, as JSON with the generation.
	// The documents for cloud-init are in it as digests only.
	AnnotationStarted = GroupPrefix + "started"
	// AnnotationRequests on a pod describes how its requests follow from what its guest may use, as
	// JSON.
	AnnotationRequests = GroupPrefix + "requests"
	// AnnotationGranted on the ConfigMap is what the guest may use by the
	// configuration in it, as JSON. It stays behind the manifest until the pod has
	// room for more.
	AnnotationGranted = GroupPrefix + "granted"
)

// The kinds of Kubernetes objects that machines have to do with.
const (
	KindPod       = "Pod"
	KindClaim     = "PersistentVolumeClaim"
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
	KindService   = "Service"
	KindNode      = "Node"
)

// AnnotationsProvisioner are the annotations in which Kubernetes records the provisioner of a
// volume claim, the newer one first.
var AnnotationsProvisioner = []string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"}
