package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineOperation is something that is done to a machine once, such as a
// restart. What it asks for never changes; its status says what became of it. The
// names are Deckhouse Virtualization's. (Added by vmop.)
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualmachineoperations,singular=virtualmachineoperation,shortName=vmop,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="VirtualMachine",type=string,JSONPath=`.spec.virtualMachineName`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Completed")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Completed")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineOperation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is asked for. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an operation cannot be changed; create another one"
	// +kubebuilder:validation:Required
	Spec VirtualMachineOperationSpec `json:"spec"`
	// status says what has become of it, as the operator has seen it.
	// +optional
	Status VirtualMachineOperationStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineOperationList is a list of operations.
//
// +kubebuilder:object:root=true
type VirtualMachineOperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the operations.
	Items []VirtualMachineOperation `json:"items"`
}

// OperationType is what an operation does.
//
// +kubebuilder:validation:Enum=Start;Stop;Restart;Evict;Migrate;Suspend;Resume
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

// VirtualMachineOperationSpec is what is asked for.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Start' || !has(self.force) || !self.force",message="a start cannot be forced"
type VirtualMachineOperationSpec struct {
	// type is what is done: Start, Stop or Restart. Evict, Migrate, Suspend and
	// Resume are known and refused.
	// +kubebuilder:validation:Required
	Type OperationType `json:"type"`
	// virtualMachineName is the machine, in the namespace of the operation.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VirtualMachineName string `json:"virtualMachineName"`
	// force does not wait for the guest: QEMU is told to end, which writes to the
	// disks what it has of them.
	// +optional
	Force bool `json:"force,omitempty"`
}

// OperationPhase sums up what has become of an operation.
//
// +kubebuilder:validation:Enum=Pending;InProgress;Completed;Failed;Superseded;Terminating
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
	// phase sums it up in one word.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`
	// request is the machine's annotation vmoperator.jdrupes.org/power-request by
	// which it is told.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Request string `json:"request,omitempty"`
	// virtualMachineUID is the machine that it was begun for.
	// +optional
	VirtualMachineUID types.UID `json:"virtualMachineUID,omitempty"`
	// podUID is the pod that the machine had then.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// startTime is when it was begun.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// deadline is when it has failed if it is not carried out by then.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// completionTime is when it was found to be carried out, refused, failed or
	// superseded.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// conditions are Completed, with the reason for the phase, and SignalSent.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}
