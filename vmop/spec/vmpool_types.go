package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VmPool is a set of machines that are assigned to users on demand. Machines
// name the pools they belong to in spec.pools.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vmpools,singular=vmpool,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.free`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Retention",type=string,JSONPath=`.spec.retention`
// +kubebuilder:printcolumn:name="Login",type=boolean,JSONPath=`.spec.loginOnAssignment`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VmPool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the pool.
	// +kubebuilder:validation:Required
	Spec VmPoolSpec `json:"spec"`
	// status has the sizes of the pool, as the operator has seen them.
	// +optional
	Status VmPoolStatus `json:"status,omitempty,omitzero"`
}

// VmPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type VmPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the pools.
	Items []VmPool `json:"items"`
}

// VmPoolSpec describes a pool.
type VmPoolSpec struct {
	// retention is how long a machine stays assigned after its last use: a
	// duration of ISO 8601 such as PT1h or P1DT12H, or an instant of RFC 3339
	// at which the assignment ends.
	// +kubebuilder:default=PT1h
	// +kubebuilder:validation:XValidation:rule="self != 'P' && !self.endsWith('T')",message="a duration needs a number behind its last letter"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}(:?\d{2})?)|P(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(\d+[Hh])?(\d+[Mm])?(\d+(\.\d{1,9})?[Ss])?)?)$`
	// +optional
	Retention string `json:"retention,omitempty"`
	// loginOnAssignment logs the user in whom a machine is assigned to.
	// +kubebuilder:default=false
	// +optional
	LoginOnAssignment bool `json:"loginOnAssignment,omitempty"`
	// permissions say who may do what with machines of the pool. Only a user
	// interface enforces them, and vmop has none.
	// +kubebuilder:validation:Required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Permissions []PoolPermission `json:"permissions"`
}

// VmPoolStatus has the sizes of a pool. A machine that is in use by hand, at its
// console, or that somebody has from another pool is neither free nor used. The
// operator writes it when a number has changed, at most every few seconds.
type VmPoolStatus struct {
	// machines is how many machines name the pool in spec.pools.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Machines *int32 `json:"machines,omitempty"`
	// free is how many of them can be assigned to a user now.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Free *int32 `json:"free,omitempty"`
	// used is how many of them are assigned to users from this pool.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Used *int32 `json:"used,omitempty"`
	// counted is when the numbers became these.
	// +optional
	Counted *metav1.Time `json:"counted,omitempty"`
}

// PoolPermission grants actions on the machines of a pool to a user or a role.
//
// +kubebuilder:validation:XValidation:rule="has(self.user) != has(self.role)",message="give exactly one of user and role"
type PoolPermission struct {
	// user is the name of the user who is granted the actions.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	User string `json:"user,omitempty"`
	// role is the role whose users are granted the actions.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Role string `json:"role,omitempty"`
	// may are the granted actions. No value means accessConsole, an empty
	// list none.
	// +kubebuilder:default={accessConsole}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	May []PoolAction `json:"may"`
}

// PoolAction is something that a user may do with a machine of a pool.
//
// +kubebuilder:validation:Enum=start;stop;reset;accessConsole;*
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
