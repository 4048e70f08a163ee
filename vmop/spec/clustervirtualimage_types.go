package spec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustervirtualimages,singular=clustervirtualimage,shortName=cvi;cvis,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 59",message="the name of an image of the cluster has at most 59 characters"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.status.format`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.storedSize`
// +kubebuilder:printcolumn:name="Claim",type=string,priority=1,JSONPath=`.status.target.persistentVolumeClaim`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ClusterVirtualImage is a [VirtualImage] of the cluster: one volume claim in the
// namespace that the operator keeps such images in, of which disks and images of all
// namespaces are made. Who looks after the cluster makes it. The names are Deckhouse
// Virtualization's. (Added by vmop.)
type ClusterVirtualImage struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an image cannot be changed; make another one"
	// +kubebuilder:validation:XValidation:rule="!has(self.dataSource.objectRef)",message="an image of the cluster is one of a server or of a container image: it is a copy of no disk or image of a namespace"
	// +kubebuilder:validation:XValidation:rule="self.dataSource.type != 'Upload'",message="an image of the cluster is one of a server or of a container image: nobody uploads it"
	// +kubebuilder:validation:Required

	// spec says what the image is. It cannot be changed. Claim and Secrets are those of
	// the namespace that such images are kept in.
	Spec VirtualImageSpec `json:"spec"`

	// +optional

	// status says what has become of it, as the operator has seen it.
	Status VirtualImageStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// ClusterVirtualImageList is a list of images of the cluster.
type ClusterVirtualImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the images.
	Items []ClusterVirtualImage `json:"items"`
}
