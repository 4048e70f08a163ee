package spec

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/vmop/conditions"
)

// VirtualMachineStatus is what the operator and the runner observed.
type VirtualMachineStatus struct {
	// phase sums up the conditions in one word for people. Programs read the
	// conditions. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Phase string `json:"phase,omitempty"`
	// created says that the machine's pod exists. (Added by vmop.)
	// +optional
	Created bool `json:"created,omitempty"`
	// ready says that the guest executes. (Added by vmop.)
	// +optional
	Ready bool `json:"ready,omitempty"`
	// nodeName is the node on which the machine runs. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ipAddress is the address at which the machine is reached. (Added by
	// vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	IPAddress string `json:"ipAddress,omitempty"`
	// observedGeneration is the generation of the specification that the
	// operator has acted on. (Added by vmop.)
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// restartAwaitingChanges are the changes of the specification that take
	// effect when the machine is started again. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +optional
	RestartAwaitingChanges []AwaitingChange `json:"restartAwaitingChanges,omitempty"`
	// lastEnd is how the machine last ended other than on request of its
	// specification. (Added by vmop.)
	// +optional
	LastEnd *MachineEnd `json:"lastEnd,omitempty"`
	// power is whether the machine should run, and why; it is missing for a machine
	// that never had a spec.runPolicy. (Added by vmop.)
	// +optional
	Power *Power `json:"power,omitempty"`
	// runnerEnd is how the machine ended, as its runner reported it; it is missing
	// while the machine runs. It is how an end is known whose pod is gone. (Added
	// by vmop.)
	// +optional
	RunnerEnd *RunnerEnd `json:"runnerEnd,omitempty"`
	// waits are what the machine waits for, by the condition that explains it.
	// (Added by vmop.)
	// +listType=map
	// +listMapKey=condition
	// +kubebuilder:validation:MaxItems=4096
	// +optional
	Waits []Wait `json:"waits,omitempty"`
	// claims are the volume claims that the operator made, or found under the names
	// that it would give, and that the machine has run with. One that is gone is not
	// replaced by an empty one, unless the machine's annotation
	// vmoperator.jdrupes.org/new-disk says so. (Added by vmop.)
	// +listType=map
	// +listMapKey=disk
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Claims []MachineClaim `json:"claims,omitempty"`
	// blockDeviceRefs are what became of the references of the specification, in their
	// order, and behind them the disks that are attached to the machine that runs. (Added
	// by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	BlockDeviceRefs []BlockDeviceStatus `json:"blockDeviceRefs,omitempty"`
	// virtualMachinePods are the pods of the machine, whatever they are called: the one
	// in which its guest executes, or will, is active, and its runner reports. They are
	// written together with what else changes, or when it could not report without.
	// (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	VirtualMachinePods []VirtualMachinePod `json:"virtualMachinePods,omitempty"`
	// stats say when the machine was in which phase, and how long its start took.
	// They are written together with what else changes, and never for their own
	// sake. (Added by vmop.)
	// +optional
	Stats *Stats `json:"stats,omitempty"`
	// runnerVersion is the version of the runner that runs the machine.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	RunnerVersion string `json:"runnerVersion,omitempty"`
	// versions are those of the programs that run the machine. (Added by vmop.)
	// +optional
	Versions *Versions `json:"versions,omitempty"`
	// machineType is QEMU's versioned machine type, which the machine keeps
	// through upgrades. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MachineType string `json:"machineType,omitempty"`
	// accelerator is kvm or tcg, which is software emulation. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Accelerator string `json:"accelerator,omitempty"`
	// emulation says why the machine runs in software emulation; it is missing
	// under KVM. (Added by vmop.)
	// +optional
	Emulation *Emulation `json:"emulation,omitempty"`
	// deviceGroups are the groups of the machine's node that may use its block
	// devices and /dev/kvm, where not everybody may: the next pod is in them.
	// (Added by vmop.)
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=2147483647
	// +listType=atomic
	// +optional
	DeviceGroups []int64 `json:"deviceGroups,omitempty"`
	// changedDocuments are the documents for the guest, and the certificate of the
	// display, that come from Secrets and whose content is another one than that which the guest was started with, as the
	// runner finds; they are missing if there is none. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ChangedDocuments []ChangedDocument `json:"changedDocuments,omitempty"`
	// attachments are the disks that are attached to the running machine, or are to be,
	// as its runner finds them. (Added by vmop.)
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Attachments []MachineAttachment `json:"attachments,omitempty"`
	// attachmentKey is the fingerprint of the key by which this run of the machine is
	// known to those who export disks to it. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=64
	// +optional
	AttachmentKey string `json:"attachmentKey,omitempty"`
	// disks are the sizes of the machine's VirtualDisks, as its running guest has them.
	// (Added by vmop.)
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Disks []MachineDisk `json:"disks,omitempty"`
	// guestPanics is how often the guest has told that it has panicked since the machine
	// was last started; it is missing if it never has. (Added by vmop.)
	// +kubebuilder:validation:Minimum=0
	// +optional
	GuestPanics int64 `json:"guestPanics,omitempty"`
	// hostName is the guest's, as its agent told it. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	HostName string `json:"hostName,omitempty"`
	// interfaces are the guest's network interfaces, as its agent told them,
	// without the loopback. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +optional
	Interfaces []Interface `json:"interfaces,omitempty"`
	// cpus is the number of CPUs that the machine has.
	// +kubebuilder:default=0
	// +optional
	CPUs int32 `json:"cpus,omitempty"`
	// ram is the memory that the guest has, as a quantity of bytes.
	// +kubebuilder:default="0"
	// +optional
	RAM *resource.Quantity `json:"ram,omitempty"`
	// consoleClient is the host that the console is connected from.
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ConsoleClient string `json:"consoleClient,omitempty"`
	// consoleUser is the user who last asked for the console.
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ConsoleUser string `json:"consoleUser,omitempty"`
	// loggedInUser is the user whom the agent in the guest has logged in.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LoggedInUser string `json:"loggedInUser,omitempty"`
	// displayPasswordSerial counts the display passwords that were set since
	// the machine was started; -1 means that the display has none.
	// +kubebuilder:default=0
	// +optional
	DisplayPasswordSerial int64 `json:"displayPasswordSerial,omitempty"`
	// osinfo is what the QEMU guest agent told about the guest's system, as it
	// told it.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	OSInfo *runtime.RawExtension `json:"osinfo,omitempty"`
	// assignment is the pool and the user that the machine is assigned to.
	// +kubebuilder:default={}
	// +optional
	Assignment *Assignment `json:"assignment,omitempty"`
	// conditions are the aspects of the machine's state, one entry of each
	// type. All are always present.
	// +kubebuilder:default={{type: "Running", status: "False", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Creation", message: "Creation of CR"}, {type: "Booted", status: "False", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Creation", message: "Creation of CR"}, {type: "VmopAgentConnected", status: "False", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Creation", message: "Creation of CR"}, {type: "UserLoggedIn", status: "False", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Creation", message: "Creation of CR"}, {type: "ConsoleConnected", status: "False", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Creation", message: "Creation of CR"}}
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// MachineAttachment is a disk that is attached to a running machine.
type MachineAttachment struct {
	// uid is that of the VirtualMachineBlockDeviceAttachment.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Required
	UID string `json:"uid"`
	// name is that of the VirtualMachineBlockDeviceAttachment.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// phase is Pending, Attaching, Attached, Detaching, Detached or Failed.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Required
	Phase string `json:"phase"`
	// place is at which of the machine's places for such disks the guest has it, from 1
	// on.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	// +optional
	Place int32 `json:"place,omitempty"`
	// message says what is waited for.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
}

// MachineDisk is a VirtualDisk as a running guest has it.
type MachineDisk struct {
	// name is that of the disk within the machine: NAME-vd-claim of VirtualDisk NAME, or
	// a digest of a long one.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Required
	Name string `json:"name"`
	// size is how large it is for the guest, as a quantity of bytes.
	// +kubebuilder:validation:Required
	Size resource.Quantity `json:"size"`
	// message says why it does not grow.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
}

// Emulation is why a machine runs in software emulation.
type Emulation struct {
	// reason is that of the condition Accelerated.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// message is what the runner has found on the node.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// AwaitingChange is one change that waits for a restart.
type AwaitingChange struct {
	// operation is what happens to the value at the path.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +kubebuilder:validation:Required
	Operation string `json:"operation"`
	// path is the JSON path of the changed field, such as
	// spec.vm.disks[0].bootindex.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// currentValue is what the running machine has.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	CurrentValue *runtime.RawExtension `json:"currentValue,omitempty"`
	// desiredValue is what it will have.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	DesiredValue *runtime.RawExtension `json:"desiredValue,omitempty"`
	// message says what has changed, where that is not in the values: they are missing
	// then. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// ChangedDocument is a document of a Secret, or the certificate of the display, whose
// content has changed since the machine was started. What is in it is told nowhere, and neither is a digest of it.
type ChangedDocument struct {
	// name is that of the document.
	// +kubebuilder:validation:Enum=metaData;userData;networkConfig;sysprep;displayCertificate
	// +kubebuilder:validation:Required
	Name string `json:"name"`
	// missing says that the Secret or the key is not there any more: the machine goes
	// on without it, and is not started again until it is back.
	// +optional
	Missing bool `json:"missing,omitempty"`
}

// The names of a [ChangedDocument].
const (
	DocumentMetaData      = "metaData"
	DocumentUserData      = "userData"
	DocumentNetworkConfig = "networkConfig"
	DocumentSysprep       = "sysprep"
	// DocumentDisplayCertificate are certificate and key of the display, which QEMU
	// reads when it starts.
	DocumentDisplayCertificate = "displayCertificate"
)

// The operations of an [AwaitingChange].
const (
	// OperationAdd means that the running machine has no value at the path.
	OperationAdd = "add"
	// OperationRemove means that the specification has none any more.
	OperationRemove = "remove"
	// OperationReplace means that both have one and they differ.
	OperationReplace = "replace"
)

// Wait is one thing that a machine waits for. An event tells of it once: at once
// if a person may have to do something, and otherwise when it lasts.
// +structType=atomic
type Wait struct {
	// condition is the type of the condition that explains the wait.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Condition string `json:"condition"`
	// reason is one word that says why.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason"`
	// object is what is waited for, by its kind and name.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Object string `json:"object"`
	// since is when the wait was first reported.
	// +kubebuilder:validation:Required
	Since metav1.Time `json:"since"`
	// told says that an event has told of it.
	// +optional
	Told bool `json:"told,omitempty"`
}

// MachineClaim is a volume claim that a machine has run with.
// +structType=atomic
type MachineClaim struct {
	// disk is the name of the disk, such as system-disk; runner-data is the runner's
	// own data.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=253
	Disk string `json:"disk"`
	// claimName is the name of the claim.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`
	// uid is the claim's, which one that is made anew does not have.
	// +kubebuilder:validation:Required
	UID types.UID `json:"uid"`
}

// MaxVirtualMachinePods is how many pods a status has at most.
const MaxVirtualMachinePods = 16

// VirtualMachinePod is a pod of a machine. The names are Deckhouse's, which has no uid.
type VirtualMachinePod struct {
	// name is the name of the pod.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid is the pod's, which the next one of its name does not have. (Added by vmop.)
	// +kubebuilder:validation:Required
	UID types.UID `json:"uid"`
	// active says that the guest executes in the pod, or will.
	// +kubebuilder:validation:Required
	Active bool `json:"active"`
}

// Assignment says whom a machine of a pool is assigned to.
type Assignment struct {
	// pool is the name of the pool that assigned the machine.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Pool string `json:"pool,omitempty"`
	// user is the user whom it is assigned to.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	User string `json:"user,omitempty"`
	// lastUsed is when the user last used it, an instant of RFC 3339.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LastUsed string `json:"lastUsed,omitempty"`
}

// Condition is one aspect of a machine's state. Its fields are those of
// [metav1.Condition] in the same order, so that one converts to the other
// (metav1.Condition(c)); only the defaults of status and message differ,
// because VM-Operator's runner may leave them out. A condition has one writer, which owns
// it as a whole.
// +structType=atomic
type Condition struct {
	// type is the name of the aspect.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Type string `json:"type"`
	// status is True, False or Unknown.
	// +kubebuilder:default=Unknown
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`
	// observedGeneration is the generation of the specification that the
	// condition was found for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastTransitionTime is when status last changed.
	// +kubebuilder:validation:Required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// reason is one word that says why.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason"`
	// message says why to people.
	// +kubebuilder:default=""
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`
}

// The types of condition that every machine has, in the order of the defaults.
const (
	// ConditionRunning is True while QEMU runs.
	ConditionRunning = conditions.Running
	// ConditionBooted is True once the guest's system is up.
	ConditionBooted = conditions.Booted
	// ConditionVmopAgentConnected is True while the agent in the guest is.
	ConditionVmopAgentConnected = conditions.VmopAgentConnected
	// ConditionUserLoggedIn is True while the wanted user is logged in.
	ConditionUserLoggedIn = conditions.UserLoggedIn
	// ConditionConsoleConnected is True while a viewer is connected.
	ConditionConsoleConnected = conditions.ConsoleConnected
)

// Reasons of the conditions. VM-Operator's users match on them.
const (
	// ReasonCreation is the reason of all conditions of a new machine.
	ReasonCreation = conditions.ReasonCreation
	// ReasonRunnerStarted means that the runner prepares the machine.
	ReasonRunnerStarted = conditions.ReasonRunnerStarted
	// ReasonVMStarted means that QEMU runs and the guest boots.
	ReasonVMStarted = conditions.ReasonVMStarted
	// ReasonVMBooted means that the guest's system is up.
	ReasonVMBooted = conditions.ReasonVMBooted
	// ReasonVMTerminating means that the machine is being stopped.
	ReasonVMTerminating = conditions.ReasonVMTerminating
	// ReasonVMStopped means that it has stopped.
	ReasonVMStopped = conditions.ReasonVMStopped
	// ReasonVmopAgentStarted means that the agent in the guest answered.
	ReasonVmopAgentStarted = conditions.ReasonVmopAgentStarted
	// ReasonVmopAgentDisconnected means that the agent is not there.
	ReasonVmopAgentDisconnected = conditions.ReasonVmopAgentDisconnected
	// ReasonNotRequested means that nobody is to be logged in.
	ReasonNotRequested = conditions.ReasonNotRequested
	// ReasonProcessing means that the login was asked for.
	ReasonProcessing = conditions.ReasonProcessing
	// ReasonLoggedIn means that the login was confirmed.
	ReasonLoggedIn = conditions.ReasonLoggedIn
	// ReasonConnected means that a viewer has connected.
	ReasonConnected = conditions.ReasonConnected
	// ReasonDisconnected means that it has gone.
	ReasonDisconnected = conditions.ReasonDisconnected
)
