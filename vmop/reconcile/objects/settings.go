package objects

import corev1 "k8s.io/api/core/v1"

// Settings are what the operator's configuration says about all machines. The
// zero value is VM-Operator's default, but for what it does not allow: the resource
// definition names the image of its runner, so that a pod that is made with it runs
// VM-Operator's program, in Java, and none of this module. Programs that want vmop's set
// RunnerImage, and RunnerImages for manifests that name VM-Operator's.
type Settings struct {
	// Version is the version of the operator, for an annotation.
	Version string
	// Operator names the operator among others, as in namespace/account; empty does
	// without: such an operator takes every machine for its own.
	Operator string
	// RunnerImage is used for machines whose manifest names no image: the
	// resource definition gives those VM-Operator's. Empty leaves it so.
	RunnerImage string
	// RunnerImages replaces images that manifests name, such as VM-Operator's
	// runner of a certain version. A key that ends in an asterisk stands for all
	// images that begin with the rest; the longest counts.
	RunnerImages map[string]string
	// RunnerPullPolicy is when nodes pull the image of machines whose manifest has no policy. Empty
	// leaves it to Kubernetes, which decides by the tag.
	RunnerPullPolicy corev1.PullPolicy
	// RunnerDataStorageClass is the storage class of the volume with the
	// runner's own data; empty means the cluster's default class. (VM-Operator:
	// runnerDataPvc.storageClassName.)
	RunnerDataStorageClass string
	// CPUOvercommit and RAMOvercommit divide what a machine has to give what its
	// pod requests. 0 and less mean 2 for CPUs and
	// 1.25 for RAM.
	CPUOvercommit float64
	RAMOvercommit float64
	// LoadBalancer makes a service for each machine's display; nil makes none.
	// (VM-Operator: loadBalancerService, where true is the same as {}.)
	LoadBalancer *LoadBalancer
	// LoggingProperties is the default of the file logging.properties.
	LoggingProperties string
	// KVMResource is the name of the extended resource by which a device plugin
	// hands /dev/kvm to a container, such as devices.kubevirt.io/kvm. Empty
	// means that there is none, and that machines whose manifest does not
	// insist run in software emulation.
	KVMResource corev1.ResourceName
	// Privileged gives the containers of machines that use KVM all devices of
	// the node, as VM-Operator does to all: KVM without a device plugin, at the
	// price of the isolation.
	Privileged bool
	// DeviceGroups are further groups of pods whose machines use KVM or block devices of the node:
	// the numbers of the groups that own /dev/kvm and disks there, which device nodes keep in a
	// container. A runner that is refused reports the number.
	DeviceGroups []int64
	// DisplayHostPorts are ports of displays that are ports of the machine's node as
	// well, where viewers reach them from outside of the cluster: as hostPort, by
	// which the pod stays in a network of its own. Two machines with such a port in
	// common cannot be on one node, so that the default ports are better left out. The
	// pods of machines with a tap interface are in the network of their node anyway.
	DisplayHostPorts PortRange
	// TakeOverData has the first pod of a machine that was VM-Operator's give the
	// files that its runner wrote, as root, to the runner's user; see
	// [TakeOverContainer]. Kubernetes does so itself on volumes that know an
	// fsGroup: not on hostPath and NFS.
	TakeOverData bool
	// ImageNamespace is where the images of the cluster (ClusterVirtualImage) are kept.
	// Empty: there are none.
	ImageNamespace string
	// CloningProvisioners are patterns of the provisioners of volumes that clone a
	// volume for a claim whose dataSource is another claim, in place of those that are
	// known to do so; nil is those.
	CloningProvisioners []string
	// Allowed is what manifests may ask for.
	Allowed Allowed
}

// PortRange are the ports from First to Last; none if both are 0.
type PortRange struct{ First, Last int32 }

// Has reports whether a port is one of them.
func (r PortRange) Has(port int32) bool { return port != 0 && r.First <= port && port <= r.Last }

// LoadBalancer is the metadata that the operator gives to all load balancer
// services.
type LoadBalancer struct {
	Labels      map[string]string
	Annotations map[string]string
}

// What [Settings] default to: VM-Operator's values.
const (
	defaultCPUOvercommit = 2
	defaultRAMOvercommit = 1.25
)

// defaultLoggingProperties is the logging.properties of a machine without its own. Only
// VM-Operator's runner reads it.
const defaultLoggingProperties = "handlers=java.util.logging.ConsoleHandler\n.level=INFO\n"

// Allowed is what the administrator lets the authors of manifests ask for beyond
// a machine in a pod without privileges. The zero value allows nothing of it. A
// pattern has an asterisk for any text.
type Allowed struct {
	// Everything is what VM-Operator allows: all of the following, and any image where pods are
	// privileged. A user who may create machines then has root on the nodes.
	Everything bool
	// Images are patterns of images beside [Settings.RunnerImage].
	Images []string
	// Bridges are patterns of bridges of the nodes that tap interfaces join. Pods
	// with one are in the network of their node.
	Bridges []string
	// NodeName allows to bypass the scheduler, and with it the taints of nodes.
	NodeName bool
	// Tolerations are patterns of the keys of taints that machines may tolerate, such
	// as dedicated or nvidia.com/*. A toleration without a key, which is for all
	// taints, needs the pattern * alone.
	Tolerations []string
	// PriorityClasses are patterns of the priority classes that machines may have.
	// Pods of others give way to those of a higher one.
	PriorityClasses []string
	// PodAnnotations are patterns of the annotations of machines that their pods have,
	// too, beside those without a prefix and dots; see [PassedOn].
	PodAnnotations []string
	// HostForwards allows ports of the node: those of a machine with a user network
	// beside a tap interface.
	HostForwards bool
	// OpenDisplays allows SPICE without a password on the pod's address: any client that reaches it
	// has the machine's screen and keyboard. Without it such a server is for its own pod, as VNC
	// always is.
	OpenDisplays bool
	// ImageHosts are patterns of servers of images, of CDs and disks, with addresses of the pod or
	// of its link, such as 127.0.0.1.
	ImageHosts []string
	// ImagePaths are folders of the runner's image that CD images and kernels may
	// come from, besides /opt, the image repository and the disks.
	ImagePaths []string
	// Shares are patterns of the claims that machines may share as folders. Of a
	// claim that is also a disk of another machine, a guest could write its image.
	Shares []string
	// LoadBalancerAnnotations are patterns of the annotations of load balancers
	// that manifests may set or remove.
	LoadBalancerAnnotations []string
}

// openDisplay reports whether displays without a password admit any client.
func (a *Allowed) openDisplay() bool { return a.Everything || a.OpenDisplays }
