package spec

// +kubebuilder:validation:Enum=UserData;UserDataRef;SysprepRef

// ProvisioningType says what provisions a guest. The names are those of Deckhouse
// Virtualization.
type ProvisioningType string

// The types of provisioning.
const (
	// ProvisioningUserData is cloud-init with user data that is in the manifest.
	ProvisioningUserData ProvisioningType = "UserData"
	// ProvisioningUserDataRef is cloud-init with user data that is in a Secret.
	ProvisioningUserDataRef ProvisioningType = "UserDataRef"
	// ProvisioningSysprepRef is Windows' setup with answers that are in a Secret.
	ProvisioningSysprepRef ProvisioningType = "SysprepRef"
)

// +kubebuilder:validation:XValidation:rule="has(self.userData) == (self.type == 'UserData')",message="userData goes with the type UserData, and with no other"
// +kubebuilder:validation:XValidation:rule="has(self.userDataRef) == (self.type == 'UserDataRef')",message="userDataRef goes with the type UserDataRef, and with no other"
// +kubebuilder:validation:XValidation:rule="has(self.sysprepRef) == (self.type == 'SysprepRef')",message="sysprepRef goes with the type SysprepRef, and with no other"

// Provisioning is what a guest sets itself up by. Its fields and their meaning are
// those of Deckhouse Virtualization.
type Provisioning struct {
	// +kubebuilder:validation:Required

	// type says which of the other fields there is.
	Type ProvisioningType `json:"type"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 2048",message="may not have more than 2048 bytes; put it into a Secret, and name that with the type UserDataRef"
	// +optional

	// userData is the file user-data for cloud-init, which is passed on as it is,
	// with its first line, such as "#cloud-config" or "#!/bin/sh": at most 2048
	// bytes. It is readable for everybody who may read the machine. In a cluster
	// the machine's pod has it from a Secret that the operator makes.
	UserData string `json:"userData,omitempty"`

	// +optional

	// userDataRef names a Secret of the type vmoperator.jdrupes.org/cloud-init or
	// provisioning.virtualization.deckhouse.io/cloud-init, whose key userData (or
	// userdata) has the file user-data. The machine is started when it is there.
	UserDataRef *ProvisioningSecret `json:"userDataRef,omitempty"`

	// +optional

	// sysprepRef names a Secret of the type vmoperator.jdrupes.org/sysprep or
	// provisioning.virtualization.deckhouse.io/sysprep with the keys unattend.xml,
	// autounattend.xml or both, which the guest gets as files on a CD. The machine is
	// started when it is there.
	SysprepRef *ProvisioningSecret `json:"sysprepRef,omitempty"`
}

// ProvisioningSecret names a Secret in the machine's namespace. Only the runner
// reads it, at each start.
type ProvisioningSecret struct {
	// +kubebuilder:validation:Enum=Secret
	// +optional

	// kind is Secret.
	Kind string `json:"kind,omitempty"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253

	// name is the Secret's.
	Name string `json:"name"`
}
