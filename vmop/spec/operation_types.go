package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualmachineoperations,singular=virtualmachineoperation,shortName=vmop,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="VirtualMachine",type=string,JSONPath=`.spec.virtualMachineName`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Completed")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Completed")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VirtualMachineOperation is something that is done to a machine once, such as a
// restart. What it asks for never changes; its status says what became of it. The
// names are Deckhouse Virtualization's. (Added by vmop.)
type VirtualMachineOperation struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an operation cannot be changed; create another one"
	// +kubebuilder:validation:Required

	// spec says what is asked for. It cannot be changed.
	Spec VirtualMachineOperationSpec `json:"spec"`

	// +optional

	// status says what has become of it, as the operator has seen it.
	Status VirtualMachineOperationStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VirtualMachineOperationList is a list of operations.
type VirtualMachineOperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the operations.
	Items []VirtualMachineOperation `json:"items"`
}

// +kubebuilder:validation:Enum=Start;Stop;Restart;Evict;Migrate;Suspend;Resume

// OperationType is what an operation does.
type OperationType string

// The types of operations.
const (
	// OperationStart: the machine is started.
	OperationStart OperationType = "Start"
	// OperationStop: the guest is asked to shut down.
	OperationStop OperationType = "Stop"
	// OperationRestart: the machine gets a new pod, and with it what waits for that.
	OperationRestart OperationType = "Restart"
	// OperationEvict and those below are reserved: they are refused.
	OperationEvict   OperationType = "Evict"
	OperationMigrate OperationType = "Migrate"
	OperationSuspend OperationType = "Suspend"
	OperationResume  OperationType = "Resume"
)

// +kubebuilder:validation:XValidation:rule="self.type != 'Start' || !has(self.force) || !self.force",message="a start cannot be forced"

// VirtualMachineOperationSpec is what is asked for.
type VirtualMachineOperationSpec struct {
	// +kubebuilder:validation:Required

	// type is what is done: Start, Stop or Restart. Evict, Migrate, Suspend and
	// Resume are known and refused.
	Type OperationType `json:"type"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253

	// virtualMachineName is the machine, in the namespace of the operation.
	VirtualMachineName string `json:"virtualMachineName"`

	// +optional

	// force does not wait for the guest: QEMU is told to end, which writes to the
	// disks what it has of them.
	Force bool `json:"force,omitempty"`
}

// +kubebuilder:validation:Enum=Pending;InProgress;Completed;Failed;Superseded;Terminating

// OperationPhase sums up what has become of an operation.
type OperationPhase string

// The phases of operations, which come in this order.
const (
	// OperationPending: it is not known yet whether it can be done.
	OperationPending OperationPhase = "Pending"
	// OperationInProgress: it was begun.
	OperationInProgress OperationPhase = "InProgress"
	// OperationCompleted: it was carried out.
	OperationCompleted OperationPhase = "Completed"
	// OperationFailed: it was refused, or not carried out.
	OperationFailed OperationPhase = "Failed"
	// OperationSuperseded: another one has taken its place.
	OperationSuperseded OperationPhase = "Superseded"
	// OperationTerminating: somebody has deleted it while it was in progress.
	OperationTerminating OperationPhase = "Terminating"
)

// Finished reports whether nothing will become of an operation any more.
func (p OperationPhase) Finished() bool {
	return p == OperationCompleted || p == OperationFailed || p == OperationSuperseded
}

// VirtualMachineOperationStatus is what has become of an operation.
type VirtualMachineOperationStatus struct {
	// +optional

	// phase sums it up in one word.
	Phase OperationPhase `json:"phase,omitempty"`

	// +kubebuilder:validation:MaxLength=256
	// +optional

	// request is the machine's annotation vmoperator.jdrupes.org/power-request by
	// which it is told.
	Request string `json:"request,omitempty"`

	// +optional

	// virtualMachineUID is the machine that it was begun for.
	VirtualMachineUID types.UID `json:"virtualMachineUID,omitempty"`

	// +optional

	// podUID is the pod that the machine had then.
	PodUID types.UID `json:"podUID,omitempty"`

	// +optional

	// startTime is when it was begun.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// +optional

	// deadline is when it has failed if it is not carried out by then.
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// +optional

	// completionTime is when it was found to be carried out, refused, failed or
	// superseded.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// conditions are Completed, with the reason for the phase, and SignalSent.
	Conditions []Condition `json:"conditions,omitempty"`
}
