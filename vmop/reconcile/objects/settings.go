package objects

import corev1 "k8s.io/api/core/v1"

// Settings are the operator's configuration for all machines. The zero value is VM-Operator's
// default, except for what it does not allow: the resource definition names the image of
// VM-Operator's runner, so that a pod created with it runs that Java program rather than vmop's.
// Programs that want vmop's set RunnerImage, and RunnerImages for manifests that name
// VM-Operator's.
type Settings struct {
	// Version is the version of the operator, for an annotation.
	Version string
	// Operator identifies the operator among others, as in namespace/account; without it the
	// operator manages every machine.
	Operator string
	// RunnerImage is used for machines whose manifest names no image: the resource definition
	// gives those VM-Operator's. Empty leaves it so.
	RunnerImage string
	// RunnerImages replaces images that manifests name, such as VM-Operator's runner of a certain
	// version. A key that ends in an asterisk stands for all images that begin with the rest; the
	// longest counts.
	RunnerImages map[string]string
	// RunnerPullPolicy is when nodes pull the image of machines whose manifest has no policy.
	// Empty leaves it to Kubernetes, which decides by the tag.
	RunnerPullPolicy corev1.PullPolicy
	// RunnerDataStorageClass is the storage class of the volume with the runner's own data; empty
	// means the cluster's default class. (VM-Operator: runnerDataPvc.storageClassName.)
	RunnerDataStorageClass string
	// CPUOvercommit and RAMOvercommit divide a machine's amounts to give its pod's requests. 0
	// and less mean 2 for CPUs and 1.25 for RAM.
	CPUOvercommit float64
	RAMOvercommit float64
	// LoadBalancer creates a service for each machine's display; nil creates none. (VM-Operator:
	// loadBalancerService, where true is the same as {}.)
	LoadBalancer *LoadBalancer
	// LoggingProperties is the default of the file logging.properties.
	LoggingProperties string
	// KVMResource is the extended resource by which a device plugin gives /dev/kvm to a
	// container, such as devices.kubevirt.io/kvm. Empty means that there is none, and that
	// machines whose manifest does not insist are emulated in software.
	KVMResource corev1.ResourceName
	// Privileged gives the containers of machines that use KVM all devices of the node, as
	// VM-Operator does for all: KVM without a device plugin, at the price of isolation.
	Privileged bool
	// DeviceGroups are further groups of pods whose machines use KVM or block devices of the
	// node: the IDs of the groups that own /dev/kvm and disks there, which device nodes keep in a
	// container. A runner without access reports the ID.
	DeviceGroups []int64
	// DisplayHostPorts are ports of displays that are also ports of the machine's node, reachable
	// from outside of the cluster: as hostPort, with which the pod stays in its own network. Two
	// machines with such a port in common cannot be on one node, so the default ports are better
	// left out. The pods of machines with a tap interface are in the network of their node
	// anyway.
	DisplayHostPorts PortRange
	// TakeOverData has the first pod of a machine that was VM-Operator's give the files that its
	// runner wrote, as root, to the runner's user; see [TakeOverContainer]. Kubernetes does so
	// itself on volumes that support fsGroup: not on hostPath and NFS.
	TakeOverData bool
	// ImageNamespace is where the images of the cluster (ClusterVirtualImage) are stored. Empty:
	// there are none.
	ImageNamespace string
	// CloningProvisioners are patterns of the provisioners that clone a volume for a claim whose
	// dataSource is another claim; nil means those known to do so.
	CloningProvisioners []string
	// Allowed is what manifests may request.
	Allowed Allowed
}

// PortRange are the ports from First to Last; none if both are 0.
type PortRange struct{ First, Last int32 }

// Has reports whether the range contains a port.
func (r PortRange) Has(port int32) bool { return port != 0 && r.First <= port && port <= r.Last }

// LoadBalancer is the metadata that the operator sets on all load balancer services.
type LoadBalancer struct {
	Labels      map[string]string
	Annotations map[string]string
}

// The defaults of [Settings]: VM-Operator's values.
const (
	defaultCPUOvercommit = 2
	defaultRAMOvercommit = 1.25
)

// defaultLoggingProperties is read only by VM-Operator's runner.
const defaultLoggingProperties = "handlers=java.util.logging.ConsoleHandler\n.level=INFO\n"

// Allowed is what the administrator lets manifests request beyond a machine in an unprivileged
// pod. The zero value allows nothing of it. In a pattern an asterisk stands for any text.
type Allowed struct {
	// Everything is what VM-Operator allows: all of the following, and any image where pods are
	// privileged. A user who may create machines then has root on the nodes.
	Everything bool
	// Images are patterns of images beside [Settings.RunnerImage].
	Images []string
	// Bridges are patterns of bridges of the nodes that tap interfaces join. Pods with one are in
	// the network of their node.
	Bridges []string
	// NodeName allows bypassing the scheduler, and with it the taints of nodes.
	NodeName bool
	// Tolerations are patterns of the keys of taints that machines may tolerate, such as
	// dedicated or nvidia.com/*. A toleration without a key, which is for all taints, needs the
	// pattern * alone.
	Tolerations []string
	// PriorityClasses are patterns of the priority classes that machines may have. Pods of a
	// higher class preempt others.
	PriorityClasses []string
	// PodAnnotations are patterns of machines' annotations that their pods have, too, beside
	// those without a prefix and dots; see [PassedOn].
	PodAnnotations []string
	// HostForwards allows ports of the node: those of a machine with a user network beside a tap
	// interface.
	HostForwards bool
	// OpenDisplays allows SPICE without a password on the pod's address: any client that reaches
	// it has the machine's screen and keyboard. Without it such a server is for its own pod, as
	// VNC always is.
	OpenDisplays bool
	// ImageHosts are patterns of servers of images, of CDs and disks, with addresses of the pod
	// or of its link, such as 127.0.0.1.
	ImageHosts []string
	// ImagePaths are folders of the runner's image that CD images and kernels may come from,
	// besides /opt, the image repository and the disks.
	ImagePaths []string
	// Shares are patterns of the claims that machines may share as folders. If the claim is also
	// another machine's disk, a guest could write that disk's image.
	Shares []string
	// LoadBalancerAnnotations are patterns of the annotations of load balancers that manifests
	// may set or remove.
	LoadBalancerAnnotations []string
}

func (a *Allowed) openDisplay() bool { return a.Everything || a.OpenDisplays }
