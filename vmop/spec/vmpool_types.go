package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vmpools,singular=vmpool,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.free`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Retention",type=string,JSONPath=`.spec.retention`
// +kubebuilder:printcolumn:name="Login",type=boolean,JSONPath=`.spec.loginOnAssignment`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VmPool is a set of machines that are assigned to users on demand. Machines
// name the pools they belong to in spec.pools.
type VmPool struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required

	// spec describes the pool.
	Spec VmPoolSpec `json:"spec"`

	// +optional

	// status has the sizes of the pool, as the operator has seen them.
	Status VmPoolStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VmPoolList is a list of pools.
type VmPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the pools.
	Items []VmPool `json:"items"`
}

// VmPoolSpec describes a pool.
type VmPoolSpec struct {
	// +kubebuilder:default=PT1h
	// +kubebuilder:validation:XValidation:rule="self != 'P' && !self.endsWith('T')",message="a duration needs a number behind its last letter"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}(:?\d{2})?)|P(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(\d+[Hh])?(\d+[Mm])?(\d+(\.\d{1,9})?[Ss])?)?)$`
	// +optional

	// retention is how long a machine stays assigned after its last use: a
	// duration of ISO 8601 such as PT1h or P1DT12H, or an instant of RFC 3339
	// at which the assignment ends.
	Retention string `json:"retention,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// loginOnAssignment logs the user in whom a machine is assigned to.
	LoginOnAssignment bool `json:"loginOnAssignment,omitempty"`

	// +kubebuilder:validation:Required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024

	// permissions say who may do what with machines of the pool. Only a user
	// interface enforces them, and vmop has none.
	Permissions []PoolPermission `json:"permissions"`
}

// VmPoolStatus has the sizes of a pool. A machine that is in use by hand, at its
// console, or that somebody has from another pool is neither free nor used. The
// operator writes it when a number has changed, at most every few seconds.
type VmPoolStatus struct {
	// +kubebuilder:validation:Minimum=0
	// +optional

	// machines is how many machines name the pool in spec.pools.
	Machines *int32 `json:"machines,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +optional

	// free is how many of them can be assigned to a user now.
	Free *int32 `json:"free,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +optional

	// used is how many of them are assigned to users from this pool.
	Used *int32 `json:"used,omitempty"`

	// +optional

	// counted is when the numbers became these.
	Counted *metav1.Time `json:"counted,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.user) != has(self.role)",message="give exactly one of user and role"

// PoolPermission grants actions on the machines of a pool to a user or a role.
type PoolPermission struct {
	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// user is the name of the user who is granted the actions.
	User string `json:"user,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// role is the role whose users are granted the actions.
	Role string `json:"role,omitempty"`

	// +kubebuilder:default={accessConsole}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional

	// may are the granted actions. No value means accessConsole, an empty
	// list none.
	May []PoolAction `json:"may"`
}

// +kubebuilder:validation:Enum=start;stop;reset;accessConsole;*

// PoolAction is something that a user may do with a machine of a pool.
type PoolAction string

// The actions of a [PoolPermission]. Their meaning is that of the [Action] of
// the same name.
const (
	PoolActionStart         PoolAction = "start"
	PoolActionStop          PoolAction = "stop"
	PoolActionReset         PoolAction = "reset"
	PoolActionAccessConsole PoolAction = "accessConsole"
	PoolActionAll           PoolAction = "*"
)
