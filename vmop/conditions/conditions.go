package conditions

// The types of condition that every machine has, in the order of the defaults.
const (
	// Running is True while QEMU runs.
	Running = "Running"
	// Booted is True once the guest's system is up.
	Booted = "Booted"
	// VmopAgentConnected is True while the agent in the guest is.
	VmopAgentConnected = "VmopAgentConnected"
	// UserLoggedIn is True while the wanted user is logged in.
	UserLoggedIn = "UserLoggedIn"
	// ConsoleConnected is True while a viewer is connected.
	ConsoleConnected = "ConsoleConnected"
)

// Reasons of the conditions. VM-Operator's users match on them.
const (
	// ReasonCreation is the reason of all conditions of a new machine.
	ReasonCreation = "Creation"
	// ReasonRunnerStarted means that the runner prepares the machine.
	ReasonRunnerStarted = "RunnerStarted"
	// ReasonVMStarted means that QEMU runs and the guest boots.
	ReasonVMStarted = "VmStarted"
	// ReasonVMBooted means that the guest's system is up.
	ReasonVMBooted = "VmBooted"
	// ReasonVMTerminating means that the machine is being stopped.
	ReasonVMTerminating = "VmTerminating"
	// ReasonVMStopped means that it has stopped.
	ReasonVMStopped = "VmStopped"
	// ReasonVmopAgentStarted means that the agent in the guest answered.
	ReasonVmopAgentStarted = "VmopAgentStarted"
	// ReasonVmopAgentDisconnected means that the agent is not there.
	ReasonVmopAgentDisconnected = "VmopAgentDisconnected"
	// ReasonNotRequested means that no user is to be logged in.
	ReasonNotRequested = "NotRequested"
	// ReasonProcessing means that the login was requested.
	ReasonProcessing = "Processing"
	// ReasonLoggedIn means that the login was confirmed.
	ReasonLoggedIn = "LoggedIn"
	// ReasonConnected means that a viewer has connected.
	ReasonConnected = "Connected"
	// ReasonDisconnected means that it has gone.
	ReasonDisconnected = "Disconnected"
)

// The types of condition that the operator adds. They are present once it has processed the
// machine. Their names are Deckhouse's where it has them.
const (
	// ConfigurationApplied is True while the specification is valid and the machine's objects match
	// it.
	ConfigurationApplied = "ConfigurationApplied"
	// BlockDevicesReady is True while the volume claims of all disks exist and are bound.
	BlockDevicesReady = "BlockDevicesReady"
	// PodReady is True while the machine's pod runs. Its reason is what the machine waits for.
	PodReady = "PodReady"
	// Accelerated is True while the guest executes on the processors of its node, False while it is
	// emulated in software, and Unknown while it does not run.
	Accelerated = "Accelerated"
	// AwaitingRestart is True while changes wait for the next start.
	AwaitingRestart = "AwaitingRestartToApplyConfiguration"
	// Ready is True while the guest executes and its runner and its node report; Unknown while the
	// node does not. Its reason sums up the other conditions.
	Ready = "Ready"
	// RunnerUpToDate is False while the machine runs with another image of the runner, and so with
	// other programs, than its next start would have.
	RunnerUpToDate = "RunnerUpToDate"
	// SoleOperator is False while two operators manage the machine.
	SoleOperator = "SoleOperator"
	// ProvisioningReady is True while what provisions the guest exists, and Unknown while that is
	// not checked, because the machine does not start.
	ProvisioningReady = "ProvisioningReady"
	// VirtualMachineClassReady is True while the class of the machine exists and is valid. Only a
	// machine that has a class has it.
	VirtualMachineClassReady = "VirtualMachineClassReady"
	// SizingPolicyMatched is True while the class of the machine allows its size. Only a machine
	// that has a class has it.
	SizingPolicyMatched = "SizingPolicyMatched"
	// GuestExecuting is the runner's; False while the guest of a running machine is paused. Where
	// it was True it is Unknown while the node does not report, as Running is; all others of the
	// runner's are its last word then.
	GuestExecuting = "GuestExecuting"
)

// Reasons of the operator's conditions. Those of PodReady that begin with a cause of an end or come
// from the kubelet are not listed.
const (
	// ReasonConfigurationApplied: the objects match the specification.
	ReasonConfigurationApplied = "ConfigurationApplied"
	// ReasonConfigurationNotApplied: an object is yet to be written.
	ReasonConfigurationNotApplied = "ConfigurationNotApplied"
	// ReasonInvalidSpecification: the specification is refused, see the message.
	ReasonInvalidSpecification = "InvalidSpecification"
	// ReasonRunnerUnsuitable: the image cannot run in the machine's pod.
	ReasonRunnerUnsuitable = "RunnerUnsuitable"
	// ReasonNotAllowed: the specification asks for what the administrator does not allow; the
	// message names the setting.
	ReasonNotAllowed = "NotAllowed"
	// ReasonTLSSecretMissing: the Secret with the certificate of the display is missing or lacks a
	// key; the message names them.
	ReasonTLSSecretMissing = "TLSSecretMissing"
	// ReasonProvisioningReady: the Secrets that the guest is provisioned from exist.
	ReasonProvisioningReady = "ProvisioningReady"
	// ReasonProvisioningNotReady: a Secret is missing or has another type; the message names it.
	ReasonProvisioningNotReady = "ProvisioningNotReady"
	// ReasonProvisioningReadyWithWarnings: cloud-init will ignore the user data.
	ReasonProvisioningReadyWithWarnings = "ProvisioningReadyWithWarnings"
	// ReasonPodAdopted: the pod of the former machine of the name is taken over.
	ReasonPodAdopted = "PodAdopted"
	// ReasonPodNotAdopted: the pod of the former machine of the name runs on, and is another
	// machine by its UUID or its disks.
	ReasonPodNotAdopted = "PodNotAdopted"
	// ReasonNameTaken: an object of the needed name exists and is not the machine's.
	ReasonNameTaken = "NameTaken"
	// ReasonWriteRefused: the API server refused a write.
	ReasonWriteRefused = "WriteRefused"
	// ReasonShrinkRefused: the specification asks for less storage than a volume has.
	ReasonShrinkRefused = "ShrinkRefused"

	// ReasonBlockDevicesReady: all claims exist and are bound.
	ReasonBlockDevicesReady = "BlockDevicesReady"
	// ReasonBlockDevicesNotReady: a claim is yet to be made or bound.
	ReasonBlockDevicesNotReady = "BlockDevicesNotReady"
	// ReasonClaimNotFound: a claim that a disk or a shared folder refers to is missing.
	ReasonClaimNotFound = "ClaimNotFound"
	// ReasonClaimOfImage: a claim is that of a VirtualImage, which no machine writes to.
	ReasonClaimOfImage = "ClaimOfImage"
	// ReasonClaimOfOtherMachine: a claim of the needed name is another machine's.
	ReasonClaimOfOtherMachine = "ClaimOfOtherMachine"
	// ReasonClaimTerminating: a claim is being deleted.
	ReasonClaimTerminating = "ClaimTerminating"
	// ReasonClaimLost: a claim's volume is gone.
	ReasonClaimLost = "ClaimLost"
	// ReasonClaimGone: a claim that the machine has run with is gone, and the user has not allowed
	// a new disk to be made.
	ReasonClaimGone = "ClaimGone"

	// ReasonPodRunning: the pod runs.
	ReasonPodRunning = "PodRunning"
	// ReasonRestartPending: the pod runs, and the restart that was asked for waits for what passes
	// by itself; the message says what.
	ReasonRestartPending = "RestartPending"
	// ReasonRestartBlocked: the pod runs, and the restart that was asked for waits for what somebody
	// has to repair, because a next pod would not start; the message says what.
	ReasonRestartBlocked = "RestartBlocked"
	// ReasonPodNotStarted: the pod waits for its node or its container.
	ReasonPodNotStarted = "PodNotStarted"
	// ReasonPodNotFound: there is no pod yet.
	ReasonPodNotFound = "PodNotFound"
	// ReasonPodTerminating: the pod is being deleted.
	ReasonPodTerminating = "PodTerminating"
	// ReasonPodFinished: the pod has ended.
	ReasonPodFinished = "PodFinished"
	// ReasonNodeLost: the pod's node does not answer.
	ReasonNodeLost = "NodeLost"
	// ReasonRestartDelayed: the machine failed and is started again later.
	ReasonRestartDelayed = "RestartDelayed"
	// ReasonDisksInUse: another pod uses the machine's disks.
	ReasonDisksInUse = "DisksInUse"
	// ReasonQuotaExceeded: a quota does not allow the pod.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonConfigurationPending: the runner has not received a change yet.
	ReasonConfigurationPending = "ConfigurationPending"
	// ReasonResizing: the pod is being resized for a guest that grows.
	ReasonResizing = "Resizing"
	// ReasonResizeDeferred: the pod's node has no room for a guest that grows now.
	ReasonResizeDeferred = "ResizeDeferred"
	// ReasonResizeInfeasible: the pod's node can never have room for it.
	ReasonResizeInfeasible = "ResizeInfeasible"
	// ReasonMemoryLimitTooLow: the pod's limit of memory is below what the machine needs, and its
	// QEMU may be killed for it.
	ReasonMemoryLimitTooLow = "MemoryLimitTooLow"
	// ReasonMachineStopped: the machine should not run.
	ReasonMachineStopped = "MachineStopped"
	// ReasonMachineDeleted: the machine is being deleted.
	ReasonMachineDeleted = "MachineDeleted"

	// ReasonStarting: the pod runs, and its runner has not reported yet that the guest executes.
	ReasonStarting = "Starting"
	// ReasonRunnerNotReporting: the runner of a running pod has not reported anything.
	ReasonRunnerNotReporting = "RunnerNotReporting"
	// ReasonNamespaceNotPrepared: the namespace lacks what machines need; the message has the
	// command that makes it.
	ReasonNamespaceNotPrepared = "NamespaceNotPrepared"
	// ReasonNamespaceTerminating: the namespace is being deleted, and the machine with it.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonImageRepositoryNotFound: the namespace has no image repository, in which the machine
	// looks for a file.
	ReasonImageRepositoryNotFound = "ImageRepositoryNotFound"
	// ReasonOtherImage: the machine runs with another image of the runner than its next start would
	// have.
	ReasonOtherImage = "OtherImage"
	// ReasonVirtualMachineClassReady: the class is there.
	ReasonVirtualMachineClassReady = "VirtualMachineClassReady"
	// ReasonVirtualMachineClassNotFound: there is no class of the name.
	ReasonVirtualMachineClassNotFound = "VirtualMachineClassNotFound"
	// ReasonVirtualMachineClassNotReady: the class cannot be read, or is not valid.
	ReasonVirtualMachineClassNotReady = "VirtualMachineClassNotReady"
	// ReasonSizingPolicyMatched: the class allows the size of the machine.
	ReasonSizingPolicyMatched = "SizingPolicyMatched"
	// ReasonSizingPolicyNotMatched: the class does not allow it.
	ReasonSizingPolicyNotMatched = "SizingPolicyNotMatched"

	// ReasonSoleOperator: no other operator manages the machine.
	ReasonSoleOperator = "SoleOperator"
	// ReasonTwoOperators: another operator manages the machine; the message names it.
	ReasonTwoOperators = "TwoOperators"
	// ReasonNodeReturned: the node reports again, the machine ran before, and its runner has had no
	// reason to report anew yet.
	ReasonNodeReturned = "NodeReturned"
	// ReasonStatusOfOthers: another writer has written fields of the status that belong to the
	// operator or the runner; the message names the writers by their field managers.
	ReasonStatusOfOthers = "StatusOfOthers"

	// ReasonKVM: the guest has the processors of its node.
	ReasonKVM = "KVM"
	// ReasonEmulationRequested: the specification asks for software emulation.
	ReasonEmulationRequested = "EmulationRequested"
	// ReasonNoKVMDevice: there is no /dev/kvm where the machine runs.
	ReasonNoKVMDevice = "NoKVMDevice"
	// ReasonKVMNotPermitted: /dev/kvm is there, and the runner may not open it.
	ReasonKVMNotPermitted = "KVMNotPermitted"
	// ReasonNoVirtualization: the processor has no virtualization, or its firmware hides it.
	ReasonNoVirtualization = "NoVirtualization"
	// ReasonKVMFails: KVM is there, and no guest executes under it.
	ReasonKVMFails = "KVMFails"
	// ReasonEmulated: the guest is emulated, and its runner does not report why.
	ReasonEmulated = "Emulated"
	// ReasonNotReported: a guest executes, and its runner, which is VM-Operator's, does not report
	// with which accelerator.
	ReasonNotReported = "NotReported"
	// ReasonNotRunning: no guest executes.
	ReasonNotRunning = "NotRunning"

	// ReasonChangesPendingRestart: changes wait for the next start.
	ReasonChangesPendingRestart = "ChangesPendingRestart"
	// ReasonNoRestartRequired: the running machine is as specified.
	ReasonNoRestartRequired = "NoRestartRequired"
	// ReasonUnexpectedState: the configuration that the machine was started with is unknown.
	ReasonUnexpectedState = "UnexpectedState"
)

// The types of condition by which the runner reports how far a part of the machine is as
// configured. Each is True if all is well, except for [AwaitingRestart], which the runner of one
// host has among them.
const (
	CPUsAdjusted       = "CPUsAdjusted"
	MemoryAdjusted     = "MemoryAdjusted"
	MediaChanged       = "MediaChanged"
	DisplayPasswordSet = "DisplayPasswordSet"
	ResetDone          = "ResetDone"
	// USBDevicesAttached is there for machines with USB devices of their host.
	USBDevicesAttached = "USBDevicesAttached"
	// SharesServed is there for machines with shared folders.
	SharesServed = "SharesServed"
)

// Reasons of these conditions.
const (
	// ReasonAsConfigured goes with everything that is well.
	ReasonAsConfigured = "AsConfigured"
	// ReasonMakingDisks: the guest waits for disks that are made of images.
	ReasonMakingDisks = "MakingDisks"
	// ReasonAdjusting means that a change is under way, and is checked again after a time.
	ReasonAdjusting = "Adjusting"
	// ReasonAboveMaximum means that the configured value exceeds what the machine was started with,
	// and was reached as far as possible.
	ReasonAboveMaximum = "AboveMaximum"
	// ReasonPodNotResized means that the guest gets more once its pod has been resized for it, of
	// which [ConfigurationApplied] says more.
	ReasonPodNotResized = "PodNotResized"
	// ReasonGuestDoesNotFollow means that the guest did not do what it was asked to.
	ReasonGuestDoesNotFollow = "GuestDoesNotFollow"
	// ReasonRefused means that QEMU refused, or that the value makes no sense.
	ReasonRefused = "Refused"
	// ReasonNotSupported means that the machine lacks the device for it.
	ReasonNotSupported = "NotSupported"
	// ReasonWaitingForTray means that the guest has locked a CD tray. It ends with an event.
	ReasonWaitingForTray = "WaitingForTray"
	// ReasonCurlMissing means that QEMU cannot read images over http.
	ReasonCurlMissing = "CurlMissing"
	// ReasonChangesWait means that a part of the machine is as configured with the next start.
	ReasonChangesWait = "ChangesWait"
	// ReasonUpToDate: the machine has the image that its next start would have.
	ReasonUpToDate = "UpToDate"
	// ReasonServerEnded means that the process which served a shared folder has ended: the guest's
	// accesses wait until the machine is started again.
	ReasonServerEnded = "ServerEnded"
	// ReasonNoPassword means that the display has none.
	ReasonNoPassword = "NoPassword"
	// ReasonRunning, ReasonNotStarted, ReasonPaused and those below are QEMU's run states.
	ReasonRunning    = "Running"
	ReasonNotStarted = "NotStarted"
	ReasonPaused     = "Paused"
	// ReasonDiskFull means that the machine waits for space on the host.
	ReasonDiskFull  = "DiskFull"
	ReasonDiskError = "DiskError"
	// ReasonGuestPanicked and ReasonWatchdog are pauses because of the guest.
	ReasonGuestPanicked = "GuestPanicked"
	ReasonWatchdog      = "Watchdog"
	ReasonInternalError = "InternalError"
	// ReasonQEMUNotResponding means that QEMU has not answered a command in time: whether the guest
	// executes is unknown.
	ReasonQEMUNotResponding = "QEMUNotResponding"
	// ReasonStopped is any other state, which the message names.
	ReasonStopped = "Stopped"
)

// The types of condition of operations. Their names, and those of most of their reasons, are
// Deckhouse's.
const (
	// Completed is True when the operation was carried out or another has taken its place; its
	// reason is the operation's progress, or why it has failed.
	Completed = "Completed"
	// SignalSent is True when the request was written to the machine.
	SignalSent = "SignalSent"
)

// Reasons of these conditions.
const (
	// ReasonVirtualMachineNotFound: the machine does not exist, or is not the one that the
	// operation was begun for.
	ReasonVirtualMachineNotFound = "VirtualMachineNotFound"
	// ReasonNotApplicableForRunPolicy: the run policy of the machine refuses it.
	ReasonNotApplicableForRunPolicy = "NotApplicableForVirtualMachineRunPolicy"
	// ReasonNotApplicableForPhase: the machine is not in a phase for it.
	ReasonNotApplicableForPhase = "NotApplicableForVirtualMachinePhase"
	// ReasonNotReadyToBeExecuted: another operation of the machine is in progress, or too little is
	// known of the machine.
	ReasonNotReadyToBeExecuted = "NotReadyToBeExecuted"
	// ReasonTypeNotSupported: the operator has no such operation.
	ReasonTypeNotSupported = "TypeNotSupported"
	// ReasonSuperseded: another operation has taken its place.
	ReasonSuperseded = "Superseded"
	// ReasonStartInProgress and the others: it was begun.
	ReasonStartInProgress   = "StartInProgress"
	ReasonStopInProgress    = "StopInProgress"
	ReasonRestartInProgress = "RestartInProgress"
	// ReasonAborted: the user, another program or the guest has decided otherwise meanwhile.
	ReasonAborted = "Aborted"
	// ReasonOperationFailed: it was not carried out in its time.
	ReasonOperationFailed = "OperationFailed"
	// ReasonOperationCompleted: it was carried out.
	ReasonOperationCompleted = "OperationCompleted"
	// ReasonSignalSent: the request was written to the machine.
	ReasonSignalSent = "SignalSentSuccess"
	// ReasonSignalError: the API server refuses to write the request to the machine.
	ReasonSignalError = "SignalSentError"
	// ReasonSignalPending: the request is about to be written to the machine.
	ReasonSignalPending = "SignalPending"
)

// The types of condition of a disk (VirtualDisk), beside [Ready].
const (
	// DiskResized is True while the volume has what the specification asks for.
	DiskResized = "Resized"
	// DiskInUse is True while machines have the disk.
	DiskInUse = "InUse"
)

// Reasons of a disk's conditions.
const (
	// ReasonDiskReady means that machines can use the disk.
	ReasonDiskReady = "DiskReady"
	// ReasonImageReady means that disks can be made of the image.
	ReasonImageReady = "ImageReady"
	// ReasonDiskProvisioning means that its claim or its content is being made.
	ReasonDiskProvisioning = "Provisioning"
	// ReasonDiskWaitForFirstConsumer means that it has no volume yet.
	ReasonDiskWaitForFirstConsumer = "WaitForFirstConsumer"
	// ReasonDiskSourceNotAllowed means that the administrator does not allow its source.
	ReasonDiskSourceNotAllowed = "DataSourceNotAllowed"
	// ReasonDiskSourceNotReady means that the disk it is a copy of is missing or not ready.
	ReasonDiskSourceNotReady = "DataSourceNotReady"
	// ReasonDiskSnapshotRefused means that the disk cannot be made of its snapshot: that is
	// larger, of another mode, or of a driver that the storage class does not ask.
	ReasonDiskSnapshotRefused = "SnapshotRefused"
	// ReasonDiskImportFailed means that the last attempt to fill it has failed.
	ReasonDiskImportFailed = "ImportFailed"
	// ReasonDiskUploadNeeded means that somebody has to upload what the disk is to be.
	ReasonDiskUploadNeeded = "UploadNeeded"
	// ReasonDiskUploadAwaited means that a pod waits for the upload now.
	ReasonDiskUploadAwaited = "UploadAwaited"
	// ReasonDiskSecretInTheWay means that there is a Secret of the name of the one with
	// the key of its uploads and downloads that was not made for it.
	ReasonDiskSecretInTheWay = "SecretInTheWay"
	// ReasonDiskClaimInTheWay means that there is a claim of its name that was not made for it.
	ReasonDiskClaimInTheWay = "ClaimInTheWay"
	// ReasonDiskPodInTheWay means the same of the pod that would fill it.
	ReasonDiskPodInTheWay = "PodInTheWay"
	// ReasonDiskResized means that the volume has what the specification asks for.
	ReasonDiskResized = "Resized"
	// ReasonDiskResizing means that the volume is being enlarged.
	ReasonDiskResizing = "Resizing"
	// ReasonDiskAttached means that machines have the disk.
	ReasonDiskAttached = "AttachedToVirtualMachine"
	// ReasonDiskCopied means that another disk is being made of it.
	ReasonDiskCopied = "BeingCopied"
	// ReasonDiskNotInUse means that no machine has it.
	ReasonDiskNotInUse = "NotInUse"
	// ReasonDiskDeleting means that it is being deleted.
	ReasonDiskDeleting = "Terminating"
)

// The types of condition of an attachment (VirtualMachineBlockDeviceAttachment).
const (
	// BlockDeviceReady is True while there is a disk that can be attached.
	BlockDeviceReady = "BlockDeviceReady"
	// VirtualMachineReady is True while the machine runs.
	VirtualMachineReady = "VirtualMachineReady"
	// AttachmentCapacity is True while the machine has a place for the disk.
	AttachmentCapacity = "DiskAttachmentCapacityAvailable"
	// Attached is True while the guest has the disk.
	Attached = "Attached"
	// AttachmentTerminating is True while an attachment that is being deleted is kept.
	AttachmentTerminating = "Terminating"
)

// Reasons of an attachment's conditions.
const (
	// ReasonBlockDeviceReady means that the disk can be attached.
	ReasonBlockDeviceReady = "BlockDeviceReady"
	// ReasonBlockDeviceNotReady means that it is missing, being made or being deleted.
	ReasonBlockDeviceNotReady = "BlockDeviceNotReady"
	// ReasonVirtualMachineReady means that the machine runs.
	ReasonVirtualMachineReady = "VirtualMachineReady"
	// ReasonVirtualMachineNotReady means that it does not.
	ReasonVirtualMachineNotReady = "VirtualMachineNotReady"
	// ReasonCapacityAvailable means that the machine has a place for the disk.
	ReasonCapacityAvailable = "CapacityAvailable"
	// ReasonCapacityReached means that it has as many disks as can be attached.
	ReasonCapacityReached = "CapacityReached"
	// ReasonAttached means that the guest has the disk.
	ReasonAttached = "Attached"
	// ReasonNotAttached means that it has not, and that something is waited for.
	ReasonNotAttached = "NotAttached"
	// ReasonAttachmentRequestSent means that the request was sent to the machine's runner.
	ReasonAttachmentRequestSent = "AttachmentRequestSent"
	// ReasonAttachmentConflict means that the disk is in use elsewhere.
	ReasonAttachmentConflict = "Conflict"
	// ReasonAttachmentFailed means that the machine's runner cannot attach it.
	ReasonAttachmentFailed = "AttachmentFailed"
	// ReasonDeviceNotAvailableOnNode means that the volume cannot be used on the node of the
	// machine.
	ReasonDeviceNotAvailableOnNode = "DeviceNotAvailableOnNode"
	// ReasonDetachPending means that the guest was asked to release the disk.
	ReasonDetachPending = "DetachPending"
)
