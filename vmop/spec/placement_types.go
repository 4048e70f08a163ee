package spec

import corev1 "k8s.io/api/core/v1"

// Affinity is that of a pod, and the same for machines: since the pod of a machine has
// the machine's labels, the selectors of all four are compared with the labels of
// machines as well as with those of other pods.
type Affinity struct {
	// nodeAffinity is about the labels of nodes.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`
	// podAffinity draws the machine to nodes with certain pods.
	// +optional
	PodAffinity *corev1.PodAffinity `json:"podAffinity,omitempty"`
	// podAntiAffinity keeps the machine off nodes with certain pods.
	// +optional
	PodAntiAffinity *corev1.PodAntiAffinity `json:"podAntiAffinity,omitempty"`
	// virtualMachineAndPodAffinity draws the machine to nodes with certain machines
	// or pods. Its terms are added to those of podAffinity. (Added by vmop.)
	// +optional
	VirtualMachineAndPodAffinity *VirtualMachineAndPodAffinity `json:"virtualMachineAndPodAffinity,omitempty"`
	// virtualMachineAndPodAntiAffinity keeps the machine off nodes with certain
	// machines or pods. Its terms are added to those of podAntiAffinity. (Added by
	// vmop.)
	// +optional
	VirtualMachineAndPodAntiAffinity *VirtualMachineAndPodAffinity `json:"virtualMachineAndPodAntiAffinity,omitempty"`
}

// VirtualMachineAndPodAffinity is what draws a machine to others, or keeps it apart.
type VirtualMachineAndPodAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution are terms that all must hold
	// when the machine gets its node.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []corev1.PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution are terms of which those nodes
	// are preferred where most hold, by their weights.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedVirtualMachineAndPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// WeightedVirtualMachineAndPodAffinityTerm is a term that is preferred to hold.
type WeightedVirtualMachineAndPodAffinityTerm struct {
	// weight is what the term counts among the others.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:Required
	Weight int32 `json:"weight"`
	// virtualMachineAndPodAffinityTerm is the term.
	// +kubebuilder:validation:Required
	Term corev1.PodAffinityTerm `json:"virtualMachineAndPodAffinityTerm"`
}
