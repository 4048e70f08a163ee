package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualmachineclasses,singular=virtualmachineclass,shortName=vmclass;vmc,scope=Cluster
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.cpu.type`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.cpu.model`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.metadata.annotations.vmoperator\.jdrupes\.org/is-default-class`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VirtualMachineClass is what machines of a class have in common: their CPU model,
// the nodes that they run on, and the sizes that they may have. A machine names its
// class (spec.virtualMachineClassName), or has the default one: that with the
// annotation vmoperator.jdrupes.org/is-default-class: "true". Nothing writes a class
// but who looks after the cluster. The names are Deckhouse Virtualization's. (Added by
// vmop.)
type VirtualMachineClass struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required

	// spec says what machines of the class have in common.
	Spec VirtualMachineClassSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// VirtualMachineClassList is a list of classes.
type VirtualMachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the classes.
	Items []VirtualMachineClass `json:"items"`
}

// VirtualMachineClassSpec says what machines of a class have in common. A change
// reaches a machine with its next start.
type VirtualMachineClassSpec struct {
	// +optional

	// cpu decides the CPU model of the machines, in place of their vm.cpuModel.
	// Without it that of the machine counts.
	CPU *ClassCPU `json:"cpu,omitempty"`

	// +optional

	// nodeSelector selects the nodes that the machines run on, in addition to what
	// they say themselves.
	NodeSelector *ClassNodeSelector `json:"nodeSelector,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional

	// tolerations are added to those of the machines. The operator's settings do not
	// bound them.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.filter(o, o.cores.min <= p.cores.max && p.cores.min <= o.cores.max).size() == 1)",message="the ranges of cores of sizingPolicies must not overlap"
	// +listType=atomic
	// +optional

	// sizingPolicies say which sizes the machines may have, each for a range of the
	// number of CPUs. A machine with another number is not started. Without any a
	// machine may have any size.
	SizingPolicies []SizingPolicy `json:"sizingPolicies,omitempty"`
}

// +kubebuilder:validation:Enum=Host;HostPassthrough;Model;Features

// ClassCPUType says what decides the CPU model of a class's machines.
type ClassCPUType string

// The types of CPUs of a class.
const (
	// ClassCPUHost and ClassCPUHostPassthrough are the processor of the node. There
	// is nothing between QEMU and the node that would make a difference.
	ClassCPUHost            ClassCPUType = "Host"
	ClassCPUHostPassthrough ClassCPUType = "HostPassthrough"
	// ClassCPUModel is one of QEMU's models, or a level of processors.
	ClassCPUModel ClassCPUType = "Model"
	// ClassCPUFeatures is the model kvm64 with further features.
	ClassCPUFeatures ClassCPUType = "Features"
)

// +kubebuilder:validation:XValidation:rule="(self.type == 'Model') == has(self.model)",message="model is for type Model, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Features') == has(self.features)",message="features are for type Features, which needs them"

// ClassCPU decides the CPU model of a class's machines.
type ClassCPU struct {
	// +kubebuilder:validation:Required

	// type is Host or HostPassthrough for the processor of the node, Model for one of
	// QEMU's models or a level of processors, Features for the model kvm64 with features.
	Type ClassCPUType `json:"type"`

	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +kubebuilder:validation:MaxLength=64
	// +optional

	// model is QEMU's name of the model, such as Skylake-Server-v4, or what the
	// processors of a level have in common: x86-64-v2, x86-64-v3 or x86-64-v4.
	Model string `json:"model,omitempty"`

	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +kubebuilder:validation:items:MaxLength=32
	// +listType=set
	// +optional

	// features are QEMU's names of the features, such as avx2.
	Features []string `json:"features,omitempty"`
}

// ClassNodeSelector selects nodes: all of it must hold.
type ClassNodeSelector struct {
	// +kubebuilder:validation:MaxProperties=64
	// +optional

	// matchLabels are labels that a node must have. They win over the machine's
	// nodeSelector.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional

	// matchExpressions are conditions on the labels of a node, as in the affinity of
	// a pod.
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.defaultCoreFraction) || !has(self.coreFractions) || self.coreFractions.size() == 0 || self.defaultCoreFraction in self.coreFractions",message="defaultCoreFraction must be one of coreFractions"

// SizingPolicy says which sizes machines may have that have some number of CPUs.
type SizingPolicy struct {
	// +kubebuilder:validation:Required

	// cores are the numbers of CPUs that it is about, those that a guest has
	// (currentCpus).
	Cores CoreRange `json:"cores"`

	// +optional

	// memory is how much of it the guest may have (currentRam, or all of maximumRam).
	Memory *MemoryRange `json:"memory,omitempty"`

	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:items:MaxLength=4
	// +listType=set
	// +optional

	// coreFractions are the parts of its CPUs that a machine may request
	// (spec.coreFraction). If there are any it must have one of them, and none of
	// spec.resources that names CPUs or memory.
	CoreFractions []string `json:"coreFractions,omitempty"`

	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:MaxLength=4
	// +optional

	// defaultCoreFraction is that of machines that have none. It is one of
	// coreFractions, if there are any.
	DefaultCoreFraction string `json:"defaultCoreFraction,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="cores.min must not be greater than cores.max"

// CoreRange are numbers of CPUs.
type CoreRange struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +kubebuilder:validation:Required

	// min is the least.
	Min int32 `json:"min"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +kubebuilder:validation:Required

	// max is the greatest.
	Max int32 `json:"max"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional

	// step is the distance of the numbers, from min on. Without it all are possible.
	Step int32 `json:"step,omitempty"`
}

// MemoryRange are sizes of memory.
type MemoryRange struct {
	// +optional

	// min is the least.
	Min *resource.Quantity `json:"min,omitempty"`

	// +optional

	// max is the greatest.
	Max *resource.Quantity `json:"max,omitempty"`

	// +optional

	// step is the distance of the sizes, from min on, or from 0. Without it all are
	// possible.
	Step *resource.Quantity `json:"step,omitempty"`

	// +optional

	// perCore bounds the memory by the number of CPUs.
	PerCore *MemoryPerCore `json:"perCore,omitempty"`
}

// MemoryPerCore bounds the memory by the number of CPUs.
type MemoryPerCore struct {
	// +optional

	// min is the least for each CPU.
	Min *resource.Quantity `json:"min,omitempty"`

	// +optional

	// max is the greatest for each CPU.
	Max *resource.Quantity `json:"max,omitempty"`
}
