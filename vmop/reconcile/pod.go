package reconcile

import (
	"maps"
	"path"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RunnerUser is the user and the group of the runner and of QEMU in a pod.
	// It is nobody's on a node; volumes are made accessible to the group.
	RunnerUser = 65532
	// diskGroup owns block devices on the nodes of the common distributions
	// (its number is fixed in Debian's and Red Hat's). Device nodes keep their
	// owner in a container, so this is what lets a user other than root open
	// the devices of its volumes; others are not there to be opened.
	diskGroup = 6
	// TerminationReserve is what a pod gets beyond the machine's
	// powerdownTimeout, in seconds: for telling QEMU to quit, for writing what
	// it has cached, and for the report. VM-Operator's 5 did not suffice.
	TerminationReserve = 30
	// tunDevice is what tap interfaces are made with.
	tunDevice = "/dev/net/tun"
)

// The names of the pod's volumes besides those of disks, which end otherwise.
const (
	volumeConfig  = "config"
	volumeData    = "runner-data"
	volumeImages  = "vmop-image-repository"
	volumeRuntime = "runtime"
	volumeTun     = "tun"
)

// PodInput is what the pod depends on besides manifest and settings.
type PodInput struct {
	// Disks are the machine's disks, see [Disks], with the names that their
	// claims really have.
	Disks []Disk
	// RunnerDataClaim is the name of the runner's data volume claim; empty
	// means that of [RunnerDataClaim].
	RunnerDataClaim string
	// VolumeModes are the modes of the claims that disks refer to by name; see
	// [RunnerConfigOptions]. Both must agree.
	VolumeModes map[string]corev1.PersistentVolumeMode
	// DisplaySecret is the name of the machine's display secret; empty if it
	// has none.
	DisplaySecret string
	// ConfigVersion is the resource version of the ConfigMap, for an
	// annotation; empty if it is not known.
	ConfigVersion string
}

// Pod is where the machine, which must have its defaults, runs.
//
// It has the rights of an ordinary program: no root, no capabilities, a file
// system that is read-only but for its volumes. Three things of a manifest or
// of the settings add to that, and no others do:
//
//   - a tap interface is made on a bridge of the node. The pod is in the node's
//     network, has its tun device, and may keep CAP_NET_ADMIN; the runner does
//     not have it, only the bridge helper (a file with that capability, which
//     is why privileges may be gained) does.
//   - a machine that may use KVM asks for [Settings.KVMResource],
//   - or has all devices of the node, with [Settings.Privileged].
//
// It is not restarted by the kubelet: what the end of a machine means is for
// the operator to decide, which replaces the pod.
func Pod(vm *spec.VirtualMachine, s Settings, in PodInput) *corev1.Pod {
	meta := objectMeta(vm, &s)
	meta.Labels[LabelComponent] = ComponentRunner
	if in.ConfigVersion != "" {
		meta.Annotations[AnnotationConfigVersion] = in.ConfigVersion
	}
	yes, no := true, false
	for i := range meta.OwnerReferences {
		meta.OwnerReferences[i].BlockOwnerDeletion = &yes
	}
	grace := int64(*vm.Spec.VM.PowerdownTimeout) + TerminationReserve
	user, policy := int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName:            ServiceAccount,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			// The guest has no business with the addresses of other services.
			EnableServiceLinks: &no,
			NodeName:           vm.Spec.NodeName,
			NodeSelector:       maps.Clone(vm.Spec.NodeSelector),
			Affinity:           vm.Spec.Affinity.DeepCopy(),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
				FSGroup: &user, FSGroupChangePolicy: &policy,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:            vm.Name,
				Image:           runnerImage(vm, &s),
				ImagePullPolicy: vm.Spec.Image.PullPolicy,
				Env:             []corev1.EnvVar{{Name: "XDG_RUNTIME_DIR", Value: runtimeBase}, {Name: "TMPDIR", Value: runtimeBase}},
				Resources:       podResources(vm, &s),
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					ReadOnlyRootFilesystem:   &yes,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, p := range displayPorts(vm, in.DisplaySecret != "") {
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{Name: p.name, ContainerPort: p.port, Protocol: corev1.ProtocolTCP})
	}
	addVolumes(vm, pod, &in)
	addAccelerator(vm, pod, &s)
	addTap(vm, pod)
	return pod
}

// displayPort is a port on which the display is served to other hosts.
type displayPort struct {
	name string
	port int32
}

// displayPorts are the ports of the display, SPICE's first. As in VM-Operator,
// SPICE is for everybody if there is no password. VNC then listens on the
// loopback interface of the pod, where no port leads; see package runnerconfig.
func displayPorts(vm *spec.VirtualMachine, password bool) []displayPort {
	d := vm.Spec.VM.Display
	if d == nil {
		return nil
	}
	var out []displayPort
	add := func(name string, port *int32) {
		if port != nil {
			out = append(out, displayPort{name, *port})
		}
	}
	if d.Spice != nil {
		add(SPICEPortName, d.Spice.Port)
	}
	if d.VNC != nil && password {
		add(VNCPortName, d.VNC.Port)
		add(WebsocketPortName, d.VNC.Websocket)
	}
	return out
}

// runnerImage is the full name of the runner's image.
func runnerImage(vm *spec.VirtualMachine, s *Settings) string {
	i := vm.Spec.Image
	if i.Source == "" {
		name := i.Repository + "/" + i.Path
		if i.Version != "" {
			name += ":" + i.Version
		}
		return name
	}
	if s.RunnerImage != "" {
		var untold spec.VirtualMachine
		spec.Default(&untold)
		if i.Source == untold.Spec.Image.Source {
			return s.RunnerImage
		}
	}
	return i.Source
}

// addVolumes adds the volumes, in the order in which VM-Operator has them.
func addVolumes(vm *spec.VirtualMachine, pod *corev1.Pod, in *PodInput) {
	c := &pod.Spec.Containers[0]
	mount := func(v corev1.Volume, at string, readOnly bool) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: at, ReadOnly: readOnly})
	}
	mount(configVolume(vm, in.DisplaySecret), ConfigDir, true)
	images := claimVolume(volumeImages, ImageRepositoryClaim)
	// Without it the kubelet would give all images to the runner's group.
	images.PersistentVolumeClaim.ReadOnly = true
	mount(images, ImageRepositoryDir, true)
	data := in.RunnerDataClaim
	if data == "" {
		data = spec.RunnerDataClaim(vm.Name)
	}
	mount(claimVolume(volumeData, data), DataDir, false)
	limit := resource.MustParse("64Mi")
	mount(corev1.Volume{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit},
	}}, runtimeBase, false)
	devices := false
	for i := range in.Disks {
		d := &in.Disks[i]
		switch {
		case d.IsCD():
		case d.volumeMode(in.VolumeModes) == corev1.PersistentVolumeFilesystem:
			mount(claimVolume(d.Name, d.Claim), path.Join(DiskMountDir, d.Name), false)
		default:
			devices = true
			pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(d.Name, d.Claim))
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: d.Name, DevicePath: path.Join(DiskDeviceDir, d.Name)})
		}
	}
	if devices {
		pod.Spec.SecurityContext.SupplementalGroups = []int64{diskGroup}
	}
}

// configVolume shows configuration and password as one directory, as the runner
// expects them.
func configVolume(vm *spec.VirtualMachine, secret string) corev1.Volume {
	mode := int32(0o440) // the runner's group, which FSGroup is
	sources := []corev1.VolumeProjection{{
		ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: vm.Name}},
	}}
	if secret != "" {
		sources = append(sources, corev1.VolumeProjection{
			Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
		})
	}
	return corev1.Volume{Name: volumeConfig, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: &mode},
	}}
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// addAccelerator gives the container KVM, unless the machine does without.
func addAccelerator(vm *spec.VirtualMachine, pod *corev1.Pod, s *Settings) {
	if vm.Spec.VM.Accelerator == spec.AcceleratorTCG {
		return
	}
	c := &pod.Spec.Containers[0]
	switch {
	case s.KVMResource != "":
		// Kubernetes takes the limit of such a resource for its request.
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		if _, given := c.Resources.Limits[s.KVMResource]; !given {
			c.Resources.Limits[s.KVMResource] = resource.MustParse("1")
		}
	case s.Privileged:
		// Kubernetes refuses privileged without the right to gain privileges.
		yes := true
		c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = &yes, &yes
	}
}

// addTap gives the pod what a tap interface on the node needs.
func addTap(vm *spec.VirtualMachine, pod *corev1.Pod) {
	taps := false
	for _, n := range vm.Spec.VM.Networks {
		taps = taps || n.Tap != nil
	}
	if !taps {
		return
	}
	pod.Spec.HostNetwork = true
	// Names of the cluster, such as that of a server of images, still resolve.
	pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	yes, device := true, corev1.HostPathCharDev
	c := &pod.Spec.Containers[0]
	c.SecurityContext.AllowPrivilegeEscalation = &yes
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeTun, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: tunDevice, Type: &device},
	}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeTun, MountPath: tunDevice})
}
