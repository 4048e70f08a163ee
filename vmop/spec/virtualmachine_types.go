package spec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachine declares one virtual machine that runs in QEMU.
//
// Its name becomes the name of a pod, a ConfigMap and a Service and the value
// of a label, so it has to be a DNS label that starts with a letter.
//
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
type VirtualMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted machine.
	// +kubebuilder:validation:Required
	Spec VirtualMachineSpec `json:"spec"`
	// status is what the operator and the runner observed.
	// +kubebuilder:default={}
	// +optional
	Status VirtualMachineStatus `json:"status,omitempty,omitzero"`
}

// VirtualMachineList is a list of virtual machines.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the machines.
	Items []VirtualMachine `json:"items"`
}

// VirtualMachineSpec is the wanted state of a machine: what runs it, who may
// use it and, under vm, the machine itself.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cloudInit) || !has(self.provisioning)",message="give either cloudInit or provisioning"
type VirtualMachineSpec struct {
	// image is the image of the runner, the program that supervises QEMU:
	// either source or both repository and path. Without it, and with the image
	// that VM-Operator's definition stored for that, it is the operator's.
	// +optional
	Image *RunnerImage `json:"image,omitempty"`
	// resources are the resources of the runner's container. If they are
	// given, the operator computes none from currentCpus and currentRam.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// virtualMachineClassName names the class of the machine. Without it that is the
	// default class, if there is one. (Added by vmop.)
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VirtualMachineClassName string `json:"virtualMachineClassName,omitempty"`
	// coreFraction is the part of each of the guest's CPUs that its pod requests,
	// from 1% to 100%; it may use all of them, and no more. The operator's
	// overcommitment does not count for it. It is not for a machine whose resources
	// name CPUs or memory. (Added by vmop.)
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:MaxLength=4
	// +optional
	CoreFraction string `json:"coreFraction,omitempty"`
	// nodeName binds the pod to a node and bypasses the scheduler.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// nodeSelector selects nodes by their labels.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// affinity says which nodes the machine is drawn to, and which machines and pods
	// it is drawn to or kept apart from.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
	// tolerations let the pod run on nodes with matching taints. The operator's
	// administrator decides which taints machines may tolerate. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// topologySpreadConstraints say how pods that have the labels of their
	// selectors are spread over nodes, zones and the like. The pod of a machine has
	// the machine's labels, and the labels app.kubernetes.io/name: vm-runner and
	// app.kubernetes.io/instance with the machine's name. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// priorityClassName names the class that says which pods others give way to.
	// The operator's administrator decides which ones machines may have. (Added by
	// vmop.)
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// terminationGracePeriodSeconds is how long the guest may take to shut down, as
	// Deckhouse has it. It counts in place of vm.powerdownTimeout, which always has a
	// value. The pod has half a minute more. (Added by vmop.)
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483
	// +optional
	TerminationGracePeriodSeconds *int32 `json:"terminationGracePeriodSeconds,omitempty"`
	// runnerTemplate selects the template of the QEMU command line.
	// +kubebuilder:default={}
	// +optional
	RunnerTemplate *RunnerTemplate `json:"runnerTemplate,omitempty"`
	// guestShutdownStops chooses what a power-off from inside the guest means:
	// true sets vm.state to Stopped, false (the default) starts the machine
	// again.
	// +kubebuilder:default=false
	// +optional
	GuestShutdownStops bool `json:"guestShutdownStops,omitempty"`
	// deletionPolicy says what becomes of the machine's disks when it is deleted:
	// Retain (the default) keeps all volume claims. Delete deletes, once the guest
	// has ended, those that were made for this machine from its
	// volumeClaimTemplates, the one with the runner's data, and the secret with the
	// display's password. What other machines mention, pods use or a former machine
	// of the name left is kept.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// runPolicy says when the machine runs. With it, vm.state and
	// guestShutdownStops count for nothing: it decides, and status.power remembers
	// what was asked for and how the machine ended. Without it, vm.state decides.
	// (Added by vmop.)
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitempty"`
	// disruptions say what may interrupt the machine. (Added by vmop.)
	// +optional
	Disruptions *Disruptions `json:"disruptions,omitempty"`
	// loadBalancerService adds to the metadata of the machine's load balancer
	// service. An empty object turns the service off for this machine.
	// +optional
	LoadBalancerService *LoadBalancerService `json:"loadBalancerService,omitempty"`
	// cloudInit is the data for cloud-init. Its presence, even as an empty
	// object, gives the machine a NoCloud seed disk.
	// +optional
	CloudInit *CloudInit `json:"cloudInit,omitempty"`
	// provisioning is what the guest sets itself up by at its first start, in
	// Deckhouse's terms: user data for cloud-init, here or in a Secret, or the
	// answers of Windows' setup from a Secret. It does not go with cloudInit.
	// (Added by vmop.)
	// +optional
	Provisioning *Provisioning `json:"provisioning,omitempty"`
	// permissions say who may do what with the machine. Only a user interface
	// enforces them, and vmop has none: what people may do with kubectl is what
	// roles of Kubernetes say.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +optional
	Permissions []Permission `json:"permissions,omitempty"`
	// pools are the names of the pools in the same namespace that the machine
	// is a member of.
	// +kubebuilder:default={}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Pools []string `json:"pools,omitempty"`
	// loggingProperties replaces the file logging.properties in the runner's
	// configuration.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	LoggingProperties string `json:"loggingProperties,omitempty"`
	// blockDeviceRefs are disks of the machine that exist by themselves. They come
	// behind those of vm.disks, and their order is the order in which the firmware tries
	// them: see bootOrder. (Added by vmop.)
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name))",message="the same disk is there twice"
	// +optional
	BlockDeviceRefs []BlockDeviceRef `json:"blockDeviceRefs,omitempty"`
	// vm is the machine itself.
	// +kubebuilder:validation:Required
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

// RunnerImage names the container image of the runner, either by source alone
// or by repository, path and possibly version.
//
// +kubebuilder:validation:XValidation:rule="has(self.source) ? !has(self.repository) && !has(self.path) : has(self.repository) && has(self.path)",message="give either source, or repository and path"
type RunnerImage struct {
	// source is the full image reference, used as it is.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Source string `json:"source,omitempty"`
	// repository is the registry and possibly the project, such as ghcr.io.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Repository string `json:"repository,omitempty"`
	// path is the image's path in the repository.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
	// version is the image's tag or digest; without it there is none.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Version string `json:"version,omitempty"`
	// pullPolicy says when the node pulls the image. Without it the
	// Kubernetes default applies.
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	// +optional
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// RunnerTemplate selects the template of the QEMU command line.
type RunnerTemplate struct {
	// source is the file name of the template, a Go text/template, resolved by
	// the runner against its template directory. Without it, and with the name of
	// one of VM-Operator's standard templates, the built-in machine is used.
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)[.]ftl([.][^/]*)?$') || self.matches('(^|/)Standard-VM-[^/]*[.]ftl[.]yaml$')",message="FreeMarker templates are not executed; write a Go text/template with one argument of QEMU per line, that begins with {{standard}} and adds its own lines"
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Source string `json:"source,omitempty"`
	// update makes the runner take the template anew on every start; with
	// false the copy of the first start is kept.
	// +kubebuilder:default=true
	// +optional
	Update *bool `json:"update,omitempty"`
}

// LoadBalancerService holds the per-machine metadata of the load balancer
// service. It is merged over the operator's own; a null value deletes a key.
type LoadBalancerService struct {
	// labels are added to the service's labels; null deletes one.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Labels map[string]*string `json:"labels,omitempty"`
	// annotations are added to the service's annotations; null deletes one.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// CloudInit is the data that the guest's cloud-init reads from a NoCloud seed.
// What is written here is readable for everybody who may read the machine:
// passwords and keys belong into a Secret.
//
// +kubebuilder:validation:XValidation:rule="!has(self.metaData) || !has(self.metaDataFrom)",message="give either metaData or metaDataFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userDataFrom)",message="give either userData or userDataFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.networkConfig) || !has(self.networkConfigFrom)",message="give either networkConfig or networkConfigFrom"
type CloudInit struct {
	// metaData becomes the file meta-data. The operator adds instance-id and
	// local-hostname if they are missing.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	MetaData map[string]string `json:"metaData,omitempty"`
	// userData becomes the file user-data, behind the line "#cloud-config".
	// It is passed on as it was written: order of keys and form of numbers
	// are kept.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	UserData *runtime.RawExtension `json:"userData,omitempty"`
	// networkConfig becomes the file network-config, in cloud-init's version 1
	// or 2. It is passed on as it was written.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	NetworkConfig *runtime.RawExtension `json:"networkConfig,omitempty"`
	// metaDataFrom takes the meta-data from a Secret, by default from its key
	// metaData: a YAML mapping of strings, to which instance-id and
	// local-hostname are added if they are missing. (Added by vmop.)
	// +optional
	MetaDataFrom *CloudInitSource `json:"metaDataFrom,omitempty"`
	// userDataFrom takes the file user-data from a Secret, by default from its
	// key userData. It is passed on as it is, with its first line, such as
	// "#cloud-config" or "#!/bin/sh". (Added by vmop.)
	// +optional
	UserDataFrom *CloudInitSource `json:"userDataFrom,omitempty"`
	// networkConfigFrom takes the file network-config from a Secret, by default
	// from its key networkConfig. It is passed on as it is. (Added by vmop.)
	// +optional
	NetworkConfigFrom *CloudInitSource `json:"networkConfigFrom,omitempty"`
}

// CloudInitSource is where a document for cloud-init is that is not in the
// machine.
type CloudInitSource struct {
	// secretRef names the Secret. Only the runner reads it, at each start.
	// +kubebuilder:validation:Required
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names a Secret and one of its keys.
type SecretKeyReference struct {
	// name is the name of the Secret, in the machine's namespace.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is the key in the Secret. Without it the key is called as the field
	// that it replaces: userData, metaData, networkConfig.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}

// Permission grants actions on a machine to a user or to a role.
//
// +kubebuilder:validation:XValidation:rule="has(self.user) != has(self.role)",message="give exactly one of user and role"
type Permission struct {
	// user is the name of the user who is granted the actions.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	User string `json:"user,omitempty"`
	// role is the role whose users are granted the actions.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Role string `json:"role,omitempty"`
	// may are the granted actions.
	// +kubebuilder:default={}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	May []Action `json:"may,omitempty"`
}

// Action is something that a user may do with a machine.
//
// +kubebuilder:validation:Enum=start;stop;reset;accessConsole;takeConsole;*
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
