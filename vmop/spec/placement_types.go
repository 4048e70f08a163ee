package spec

import corev1 "k8s.io/api/core/v1"

// Affinity is that of a pod, and the same for machines: since the pod of a machine has
// the machine's labels, the selectors of all four are compared with the labels of
// machines as well as with those of other pods.
type Affinity struct {
	// +optional

	// nodeAffinity is about the labels of nodes.
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// +optional

	// podAffinity draws the machine to nodes with certain pods.
	PodAffinity *corev1.PodAffinity `json:"podAffinity,omitempty"`

	// +optional

	// podAntiAffinity keeps the machine off nodes with certain pods.
	PodAntiAffinity *corev1.PodAntiAffinity `json:"podAntiAffinity,omitempty"`

	// +optional

	// virtualMachineAndPodAffinity draws the machine to nodes with certain machines
	// or pods. Its terms are added to those of podAffinity. (Added by vmop.)
	VirtualMachineAndPodAffinity *VirtualMachineAndPodAffinity `json:"virtualMachineAndPodAffinity,omitempty"`

	// +optional

	// virtualMachineAndPodAntiAffinity keeps the machine off nodes with certain
	// machines or pods. Its terms are added to those of podAntiAffinity. (Added by
	// vmop.)
	VirtualMachineAndPodAntiAffinity *VirtualMachineAndPodAffinity `json:"virtualMachineAndPodAntiAffinity,omitempty"`
}

// VirtualMachineAndPodAffinity is what draws a machine to others, or keeps it apart.
type VirtualMachineAndPodAffinity struct {
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional

	// requiredDuringSchedulingIgnoredDuringExecution are terms that all must hold
	// when the machine gets its node.
	RequiredDuringSchedulingIgnoredDuringExecution []corev1.PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional

	// preferredDuringSchedulingIgnoredDuringExecution are terms of which those nodes
	// are preferred where most hold, by their weights.
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedVirtualMachineAndPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// WeightedVirtualMachineAndPodAffinityTerm is a term that is preferred to hold.
type WeightedVirtualMachineAndPodAffinityTerm struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:Required

	// weight is what the term counts among the others.
	Weight int32 `json:"weight"`

	// +kubebuilder:validation:Required

	// virtualMachineAndPodAffinityTerm is the term.
	Term corev1.PodAffinityTerm `json:"virtualMachineAndPodAffinityTerm"`
}
