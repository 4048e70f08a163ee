package spec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vms,singular=vm,scope=Namespaced
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.ipAddress`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.status.assignment.user`
// +kubebuilder:printcolumn:name="CPUs",type=integer,priority=1,JSONPath=`.status.cpus`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.ram`
// +kubebuilder:printcolumn:name="Accelerator",type=string,priority=1,JSONPath=`.status.accelerator`
// +kubebuilder:printcolumn:name="Need restart",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="AwaitingRestartToApplyConfiguration")].status`
// +kubebuilder:printcolumn:name="Up to date",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="RunnerUpToDate")].status`
// +kubebuilder:printcolumn:name="Agent",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="VmopAgentConnected")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters that starts with a letter",optionalOldSelf=true

// VirtualMachine declares one virtual machine that runs in QEMU.
//
// Its name becomes the name of a pod, a ConfigMap and a Service and the value
// of a label, so it has to be a DNS label that starts with a letter.
type VirtualMachine struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required

	// spec is the wanted machine.
	Spec VirtualMachineSpec `json:"spec"`

	// +kubebuilder:default={}
	// +optional

	// status is what the operator and the runner observed.
	Status VirtualMachineStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VirtualMachineList is a list of virtual machines.
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the machines.
	Items []VirtualMachine `json:"items"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.cloudInit) || !has(self.provisioning)",message="give either cloudInit or provisioning"

// VirtualMachineSpec is the wanted state of a machine: what runs it, who may
// use it and, under vm, the machine itself.
type VirtualMachineSpec struct {
	// +optional

	// image is the image of the runner, the program that supervises QEMU:
	// either source or both repository and path. Without it, and with the image
	// that VM-Operator's definition stored for that, it is the operator's.
	Image *RunnerImage `json:"image,omitempty"`

	// +optional

	// resources are the resources of the runner's container. If they are
	// given, the operator computes none from currentCpus and currentRam.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// virtualMachineClassName names the class of the machine. Without it that is the
	// default class, if there is one. (Added by vmop.)
	VirtualMachineClassName string `json:"virtualMachineClassName,omitempty"`

	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:MaxLength=4
	// +optional

	// coreFraction is the part of each of the guest's CPUs that its pod requests,
	// from 1% to 100%; it may use all of them, and no more. The operator's
	// overcommitment does not count for it. It is not for a machine whose resources
	// name CPUs or memory. (Added by vmop.)
	CoreFraction string `json:"coreFraction,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// nodeName binds the pod to a node and bypasses the scheduler.
	NodeName string `json:"nodeName,omitempty"`

	// +kubebuilder:validation:MaxProperties=256
	// +optional

	// nodeSelector selects nodes by their labels.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// +optional

	// affinity says which nodes the machine is drawn to, and which machines and pods
	// it is drawn to or kept apart from.
	Affinity *Affinity `json:"affinity,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional

	// tolerations let the pod run on nodes with matching taints. The operator's
	// administrator decides which taints machines may tolerate. (Added by vmop.)
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// topologySpreadConstraints say how pods that have the labels of their
	// selectors are spread over nodes, zones and the like. The pod of a machine has
	// the machine's labels, and the labels app.kubernetes.io/name: vm-runner and
	// app.kubernetes.io/instance with the machine's name. (Added by vmop.)
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// priorityClassName names the class that says which pods others give way to.
	// The operator's administrator decides which ones machines may have. (Added by
	// vmop.)
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483
	// +optional

	// terminationGracePeriodSeconds is how long the guest may take to shut down, as
	// Deckhouse has it. It counts in place of vm.powerdownTimeout, which always has a
	// value. The pod has half a minute more. (Added by vmop.)
	TerminationGracePeriodSeconds *int32 `json:"terminationGracePeriodSeconds,omitempty"`

	// +kubebuilder:default={}
	// +optional

	// runnerTemplate selects the template of the QEMU command line.
	RunnerTemplate *RunnerTemplate `json:"runnerTemplate,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// guestShutdownStops chooses what a power-off from inside the guest means:
	// true sets vm.state to Stopped, false (the default) starts the machine
	// again.
	GuestShutdownStops bool `json:"guestShutdownStops,omitempty"`

	// +kubebuilder:validation:Enum=Retain;Delete
	// +optional

	// deletionPolicy says what becomes of the machine's disks when it is deleted:
	// Retain (the default) keeps all volume claims. Delete deletes, once the guest
	// has ended, those that were made for this machine from its
	// volumeClaimTemplates, the one with the runner's data, and the secret with the
	// display's password. What other machines mention, pods use or a former machine
	// of the name left is kept.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// +optional

	// runPolicy says when the machine runs. With it, vm.state and
	// guestShutdownStops count for nothing: it decides, and status.power remembers
	// what was asked for and how the machine ended. Without it, vm.state decides.
	// (Added by vmop.)
	RunPolicy RunPolicy `json:"runPolicy,omitempty"`

	// +optional

	// disruptions say what may interrupt the machine. (Added by vmop.)
	Disruptions *Disruptions `json:"disruptions,omitempty"`

	// +optional

	// loadBalancerService adds to the metadata of the machine's load balancer
	// service. An empty object turns the service off for this machine.
	LoadBalancerService *LoadBalancerService `json:"loadBalancerService,omitempty"`

	// +optional

	// cloudInit is the data for cloud-init. Its presence, even as an empty
	// object, gives the machine a NoCloud seed disk.
	CloudInit *CloudInit `json:"cloudInit,omitempty"`

	// +optional

	// provisioning is what the guest sets itself up by at its first start, in
	// Deckhouse's terms: user data for cloud-init, here or in a Secret, or the
	// answers of Windows' setup from a Secret. It does not go with cloudInit.
	// (Added by vmop.)
	Provisioning *Provisioning `json:"provisioning,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +optional

	// permissions say who may do what with the machine. Only a user interface
	// enforces them, and vmop has none: what people may do with kubectl is what
	// roles of Kubernetes say.
	Permissions []Permission `json:"permissions,omitempty"`

	// +kubebuilder:default={}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +optional

	// pools are the names of the pools in the same namespace that the machine
	// is a member of.
	Pools []string `json:"pools,omitempty"`

	// +kubebuilder:validation:MaxLength=65536
	// +optional

	// loggingProperties replaces the file logging.properties in the runner's
	// configuration.
	LoggingProperties string `json:"loggingProperties,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name))",message="the same disk is there twice"
	// +optional

	// blockDeviceRefs are disks of the machine that exist by themselves. They come
	// behind those of vm.disks, and their order is the order in which the firmware tries
	// them: see bootOrder. (Added by vmop.)
	BlockDeviceRefs []BlockDeviceRef `json:"blockDeviceRefs,omitempty"`

	// +kubebuilder:validation:Required

	// vm is the machine itself.
	VM Machine `json:"vm"`
}

// DeletionPolicy says what becomes of a machine's disks when it is deleted.
type DeletionPolicy string

const (
	// DeletionRetain keeps them, as an empty policy does.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete deletes the volume claims and the display secret that were made
	// for the machine.
	DeletionDelete DeletionPolicy = "Delete"
)

// +kubebuilder:validation:XValidation:rule="has(self.source) ? !has(self.repository) && !has(self.path) : has(self.repository) && has(self.path)",message="give either source, or repository and path"

// RunnerImage names the container image of the runner, either by source alone
// or by repository, path and possibly version.
type RunnerImage struct {
	// +kubebuilder:validation:MaxLength=2048
	// +optional

	// source is the full image reference, used as it is.
	Source string `json:"source,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// repository is the registry and possibly the project, such as ghcr.io.
	Repository string `json:"repository,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// path is the image's path in the repository.
	Path string `json:"path,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// version is the image's tag or digest; without it there is none.
	Version string `json:"version,omitempty"`

	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	// +optional

	// pullPolicy says when the node pulls the image. Without it the
	// Kubernetes default applies.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// RunnerTemplate selects the template of the QEMU command line.
type RunnerTemplate struct {
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)[.]ftl([.][^/]*)?$') || self.matches('(^|/)Standard-VM-[^/]*[.]ftl[.]yaml$')",message="FreeMarker templates are not executed; write a Go text/template with one argument of QEMU per line, that begins with {{standard}} and adds its own lines"
	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// source is the file name of the template, a Go text/template, resolved by
	// the runner against its template directory. Without it, and with the name of
	// one of VM-Operator's standard templates, the built-in machine is used.
	Source string `json:"source,omitempty"`

	// +kubebuilder:default=true
	// +optional

	// update makes the runner take the template anew on every start; with
	// false the copy of the first start is kept.
	Update *bool `json:"update,omitempty"`
}

// LoadBalancerService holds the per-machine metadata of the load balancer
// service. It is merged over the operator's own; a null value deletes a key.
type LoadBalancerService struct {
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional

	// labels are added to the service's labels; null deletes one.
	Labels map[string]*string `json:"labels,omitempty"`

	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional

	// annotations are added to the service's annotations; null deletes one.
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.metaData) || !has(self.metaDataFrom)",message="give either metaData or metaDataFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userDataFrom)",message="give either userData or userDataFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.networkConfig) || !has(self.networkConfigFrom)",message="give either networkConfig or networkConfigFrom"

// CloudInit is the data that the guest's cloud-init reads from a NoCloud seed.
// What is written here is readable for everybody who may read the machine:
// passwords and keys belong into a Secret.
type CloudInit struct {
	// +kubebuilder:validation:MaxProperties=256
	// +optional

	// metaData becomes the file meta-data. The operator adds instance-id and
	// local-hostname if they are missing.
	MetaData map[string]string `json:"metaData,omitempty"`

	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional

	// userData becomes the file user-data, behind the line "#cloud-config".
	// It is passed on as it was written: order of keys and form of numbers
	// are kept.
	UserData *runtime.RawExtension `json:"userData,omitempty"`

	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional

	// networkConfig becomes the file network-config, in cloud-init's version 1
	// or 2. It is passed on as it was written.
	NetworkConfig *runtime.RawExtension `json:"networkConfig,omitempty"`

	// +optional

	// metaDataFrom takes the meta-data from a Secret, by default from its key
	// metaData: a YAML mapping of strings, to which instance-id and
	// local-hostname are added if they are missing. (Added by vmop.)
	MetaDataFrom *CloudInitSource `json:"metaDataFrom,omitempty"`

	// +optional

	// userDataFrom takes the file user-data from a Secret, by default from its
	// key userData. It is passed on as it is, with its first line, such as
	// "#cloud-config" or "#!/bin/sh". (Added by vmop.)
	UserDataFrom *CloudInitSource `json:"userDataFrom,omitempty"`

	// +optional

	// networkConfigFrom takes the file network-config from a Secret, by default
	// from its key networkConfig. It is passed on as it is. (Added by vmop.)
	NetworkConfigFrom *CloudInitSource `json:"networkConfigFrom,omitempty"`
}

// CloudInitSource is where a document for cloud-init is that is not in the
// machine.
type CloudInitSource struct {
	// +kubebuilder:validation:Required

	// secretRef names the Secret. Only the runner reads it, at each start.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names a Secret and one of its keys.
type SecretKeyReference struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253

	// name is the name of the Secret, in the machine's namespace.
	Name string `json:"name"`

	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional

	// key is the key in the Secret. Without it the key is called as the field
	// that it replaces: userData, metaData, networkConfig.
	Key string `json:"key,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.user) != has(self.role)",message="give exactly one of user and role"

// Permission grants actions on a machine to a user or to a role.
type Permission struct {
	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// user is the name of the user who is granted the actions.
	User string `json:"user,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// role is the role whose users are granted the actions.
	Role string `json:"role,omitempty"`

	// +kubebuilder:default={}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional

	// may are the granted actions.
	May []Action `json:"may,omitempty"`
}

// +kubebuilder:validation:Enum=start;stop;reset;accessConsole;takeConsole;*

// Action is something that a user may do with a machine.
type Action string

// The actions of a [Permission].
const (
	// ActionStart is to start the machine.
	ActionStart Action = "start"
	// ActionStop is to stop it.
	ActionStop Action = "stop"
	// ActionReset is to reset it.
	ActionReset Action = "reset"
	// ActionAccessConsole is to open the console while no one else uses it.
	ActionAccessConsole Action = "accessConsole"
	// ActionTakeConsole is to open the console even if somebody else uses it;
	// it includes ActionAccessConsole.
	ActionTakeConsole Action = "takeConsole"
	// ActionAll stands for all the others.
	ActionAll Action = "*"
)
