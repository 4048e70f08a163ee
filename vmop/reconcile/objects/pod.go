package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// diskGroup owns block devices on the nodes of the common distributions (the number is fixed
	// in Debian and Red Hat). Device nodes keep their owner in a container, so this lets a user
	// other than root open the devices of its volumes; the container has no others.
	diskGroup = 6
	// TerminationReserve is a pod's grace period beyond the machine's powerdownTimeout, in
	// seconds: for QEMU to quit, for writing its caches, and for the report. VM-Operator's 5 did
	// not suffice.
	TerminationReserve = 30
)

// The names of the pod's volumes besides those of disks, whose names have other suffixes.
const (
	volumeConfig  = "config"
	volumeData    = "runner-data"
	volumeImages  = "vmop-image-repository"
	volumeRuntime = "runtime"
	volumeToken   = "api-token"
)

// Pod returns the pod of a machine, which must have its defaults.
//
// It is unprivileged: no root, no capabilities, a file system that is read-only but for its
// volumes. Only four things of a manifest or of the settings add to that:
//
//   - a tap interface is made on a bridge of the node. The pod is in the node's
//     network and has its tun device. A container that ends before the runner
//     starts has CAP_NET_ADMIN, see [TapContainer]; the runner has nothing.
//   - a machine that may use KVM asks for [Settings.KVMResource],
//   - or has all devices of the node, with [Settings.Privileged],
//   - the first pod of a machine that was VM-Operator's has a container that is
//     root with CAP_CHOWN and ends before the runner starts, with
//     [Settings.TakeOverData]; see [TakeOverContainer].
//
// The kubelet does not restart it: the operator decides what the end of a machine means, and
// replaces the pod.
func Pod(vm *spec.VirtualMachine, s Settings, in PodInput) *corev1.Pod {
	meta := objectMeta(vm, &s)
	meta.Name = PodName(vm.Name)
	meta.Labels[names.LabelComponent] = names.ComponentRunner
	if in.ConfigVersion != "" {
		meta.Annotations[names.AnnotationConfigVersion] = in.ConfigVersion
	}
	yes, no := true, false
	for i := range meta.OwnerReferences {
		// Without a controller a drain of its node fails: the pod would not be recreated.
		meta.OwnerReferences[i].Controller, meta.OwnerReferences[i].BlockOwnerDeletion = &yes, &yes
	}
	user, policy := int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch
	pull := s.RunnerPullPolicy
	if vm.Spec.Image != nil {
		pull = cmp.Or(vm.Spec.Image.PullPolicy, pull)
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName:            names.ServiceAccount,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(vm.Spec.ShutdownSeconds() + TerminationReserve),
			// The guest does not need the addresses of other services.
			EnableServiceLinks: &no,
			// Only the runner has a token, see [tokenVolume].
			AutomountServiceAccountToken: &no,
			NodeName:                     vm.Spec.NodeName,
			NodeSelector:                 maps.Clone(vm.Spec.NodeSelector),
			Affinity:                     podAffinity(vm.Spec.Affinity),
			Tolerations:                  deepCopies(vm.Spec.Tolerations, (*corev1.Toleration).DeepCopyInto),
			TopologySpreadConstraints:    deepCopies(vm.Spec.TopologySpreadConstraints, (*corev1.TopologySpreadConstraint).DeepCopyInto),
			PriorityClassName:            vm.Spec.PriorityClassName,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
				FSGroup: &user, FSGroupChangePolicy: &policy,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:            vm.Name,
				Image:           RunnerImage(vm, &s),
				ImagePullPolicy: pull,
				Env:             []corev1.EnvVar{{Name: "XDG_RUNTIME_DIR", Value: machineconfig.RuntimeBase}, {Name: "TMPDIR", Value: machineconfig.RuntimeBase}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					ReadOnlyRootFilesystem:   &yes,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, p := range displayPorts(vm, &s, in.DisplaySecret != "") {
		port := corev1.ContainerPort{Name: p.Name, ContainerPort: ListeningPort(vm, &s, p), Protocol: corev1.ProtocolTCP}
		if s.DisplayHostPorts.Has(p.Port) {
			port.HostPort = p.Port
		}
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, port)
	}
	setResources(vm, pod, &s, &in)
	addVolumes(vm, pod, &in)
	addAccelerator(vm, pod, &s)
	addDeviceGroups(vm, pod, &s, in.DeviceGroups)
	if in.TakeOver && s.TakeOverData {
		addTakeOver(pod)
	}
	addTap(vm, pod)
	return pod
}

// displayPorts returns the ports on which the display is served to other hosts, SPICE's first. A
// server without a password listens on the loopback interface of the pod, which no port reaches;
// see package runnerconfig. SPICE then admits any client only if the administrator allows it, as
// VM-Operator does.
func displayPorts(vm *spec.VirtualMachine, s *Settings, password bool) []spec.DisplayPort {
	var out []spec.DisplayPort
	for _, server := range vm.Spec.VM.Display.Servers() {
		if password || server.Openable && s.Allowed.openDisplay() {
			out = append(out, server.Ports...)
		}
	}
	return out
}

func addVolumes(vm *spec.VirtualMachine, pod *corev1.Pod, in *PodInput) {
	c := &pod.Spec.Containers[0]
	mount := func(v corev1.Volume, at string, readOnly bool) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: at, ReadOnly: readOnly})
	}
	mount(configVolume(vm, in), machineconfig.ConfigDir, true)
	// Mounted only where needed: a volume restricted to one node would put all machines there.
	if in.ImageRepository || len(machineconfig.RepositoryFiles(vm)) > 0 {
		images := claimVolume(volumeImages, names.ImageRepositoryClaim)
		// Otherwise the kubelet would give all images to the runner's group.
		images.PersistentVolumeClaim.ReadOnly = true
		mount(images, machineconfig.ImageRepositoryDir, true)
	}
	data := in.RunnerDataClaim
	if data == "" {
		data = spec.RunnerDataClaimName(vm.Name)
	}
	mount(claimVolume(volumeData, data), machineconfig.DataDir, false)
	mount(corev1.Volume{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("64Mi"))},
	}}, machineconfig.RuntimeBase, false)
	devices := false
	for i := range in.Disks {
		d := &in.Disks[i]
		switch {
		case d.IsImage():
			// The volume itself is writable, as for all its users, some of which fill it.
			mount(claimVolume(d.Name, d.Claim), path.Join(machineconfig.DiskMountDir, d.Name), true)
		case d.IsCD():
		case d.Entry.Ephemeral():
			mount(ephemeralVolume(d), path.Join(machineconfig.DiskMountDir, d.Name), false)
		case d.VolumeMode(in.VolumeModes) == corev1.PersistentVolumeFilesystem:
			mount(claimVolume(d.Name, d.Claim), path.Join(machineconfig.DiskMountDir, d.Name), false)
		default:
			devices = true
			pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(d.Name, d.Claim))
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: d.Name, DevicePath: path.Join(machineconfig.DiskDeviceDir, d.Name)})
		}
	}
	shared := map[string]int{} // volumes by claim: a pod that has two of one claim never starts
	for i := range vm.Spec.VM.Shares {
		s := &vm.Spec.VM.Shares[i]
		if s.PersistentVolumeClaim == nil {
			continue
		}
		at, claim := path.Join(machineconfig.ShareMountDir, s.Tag), s.PersistentVolumeClaim.ClaimName
		if n, known := shared[claim]; known {
			v := &pod.Spec.Volumes[n]
			v.PersistentVolumeClaim.ReadOnly = v.PersistentVolumeClaim.ReadOnly && s.ReadOnly
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: at, ReadOnly: s.ReadOnly})
			continue
		}
		shared[claim] = len(pod.Spec.Volumes)
		v := claimVolume(shareVolume(s.Tag), claim)
		v.PersistentVolumeClaim.ReadOnly = s.ReadOnly
		mount(v, at, s.ReadOnly)
	}
	mount(tokenVolume(), tokenDir, true)
	if devices {
		pod.Spec.SecurityContext.SupplementalGroups = []int64{diskGroup}
	}
}

// groupReads is the mode of files for the runner's group, which FSGroup is.
const groupReads int32 = 0o440

// configVolume projects configuration and password into one directory, as the runner expects
// them. The keys are named: of sources with a key in common the last wins, and users who may
// write secrets must not write configurations.
func configVolume(vm *spec.VirtualMachine, in *PodInput) corev1.Volume {
	key := func(name string) []corev1.KeyToPath { return []corev1.KeyToPath{{Key: name, Path: name}} }
	sources := []corev1.VolumeProjection{{
		ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: vm.Name},
			Items:                append(key(names.ConfigKey), key(names.LoggingKey)...),
		},
	}}
	if in.DisplaySecret != "" {
		of := corev1.LocalObjectReference{Name: in.DisplaySecret}
		// Required: a display without its password would admit any client.
		sources = append(sources,
			corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: of, Items: key(names.PasswordKey)}},
			corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: of, Items: key(names.PasswordExpiryKey), Optional: new(true)}})
	}
	sources = append(sources, provisioningSecrets(vm, in.UserData)...)
	sources = append(sources, displayCertificates(vm, in.Certificate)...)
	return corev1.Volume{Name: volumeConfig, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(groupReads)},
	}}
}

// provisioningSecrets returns the keys of Secrets that the guest gets. They are optional: the
// runner reports a missing one, while a pod would wait for it without a trace in the machine's
// status. made is the Secret with the user data of the manifest, if that is not the first.
func provisioningSecrets(vm *spec.VirtualMachine, made string) []corev1.VolumeProjection {
	yes := true
	var out []corev1.VolumeProjection
	inside := func(file string) string { return strings.TrimPrefix(file, machineconfig.ConfigDir+"/") }
	for _, s := range machineconfig.SecretSources(vm) {
		items := []corev1.KeyToPath{{Key: s.Key, Path: inside(s.File)}}
		if s.OtherKey != "" {
			items = append(items, corev1.KeyToPath{Key: s.OtherKey, Path: inside(s.OtherFile)})
		}
		name := s.Secret
		if vm.Spec.InlineUserData() != "" { // inline user data has no others beside it
			name = cmp.Or(made, name)
		}
		out = append(out, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items, Optional: &yes,
		}})
	}
	return out
}

// displayCertificates returns the keys of the Secret with the display's certificate, under QEMU's
// names. They are optional like those of cloud-init; without them the runner does not start the
// machine.
func displayCertificates(vm *spec.VirtualMachine, made string) []corev1.VolumeProjection {
	tls := vm.Spec.VM.Display.TLS
	if tls == nil {
		return nil
	}
	name := tls.SecretName
	if tls.GenerateSecret {
		if name = made; name == "" {
			name = DisplayCertificateName(vm.Name)
		}
	}
	var items []corev1.KeyToPath
	for key, file := range map[string]string{corev1.TLSCertKey: qemucmd.TLSCertFile, corev1.TLSPrivateKeyKey: qemucmd.TLSKeyFile, names.CertificateAuthorityKey: qemucmd.TLSCAFile} {
		items = append(items, corev1.KeyToPath{Key: key, Path: path.Join(strings.TrimPrefix(machineconfig.DisplayTLSDir, machineconfig.ConfigDir+"/"), file)})
	}
	slices.SortFunc(items, func(a, b corev1.KeyToPath) int { return cmp.Compare(a.Key, b.Key) })
	return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items, Optional: new(true),
	}}}
}

const (
	tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the lifetime of a token; the kubelet renews it.
	tokenSeconds = 3600
)

func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(groupReads),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

// shareVolume returns the name of a share's volume, a DNS label. Tags are case-sensitive and may
// have underscores, so it is a digest of the tag.
func shareVolume(tag string) string {
	sum := sha256.Sum256([]byte(tag))
	return "share-" + hex.EncodeToString(sum[:16])
}

// ephemeralVolume holds a disk deleted with its pod, and what is fetched for it. It is limited,
// so that no machine fills its node's disk.
func ephemeralVolume(d *machineconfig.Disk) corev1.Volume {
	size := int64(limits.DefaultContainerDisk)
	if q := d.Entry.ContainerDisk.Size; q != nil {
		size = min(spec.Bytes(*q), math.MaxInt64/4)
	}
	return corev1.Volume{Name: d.Name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(2*size+256<<20, resource.BinarySI)},
	}}
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// addDeviceGroups adds the groups that own the node's devices to a pod with any devices: those of
// the settings, and those found by a runner.
func addDeviceGroups(vm *spec.VirtualMachine, pod *corev1.Pod, s *Settings, found []int64) {
	kvm := vm.Spec.VM.Accelerator != spec.AcceleratorTCG && (s.KVMResource != "" || s.Privileged)
	if !kvm && len(pod.Spec.Containers[0].VolumeDevices) == 0 {
		return
	}
	groups := slices.Clone(s.DeviceGroups)
	if p := pod.Spec.Containers[0].SecurityContext.Privileged; p == nil || !*p {
		groups = append(groups, found...)
	}
	for _, g := range groups {
		if c := pod.Spec.SecurityContext; g > 0 && g <= math.MaxInt32 && !slices.Contains(c.SupplementalGroups, g) {
			c.SupplementalGroups = append(c.SupplementalGroups, g)
		}
	}
}

const (
	// KVMContainer is the name of the init container that creates /dev/kvm for the runner of a
	// privileged pod. For a machine of that name it is otherKVMContainer.
	KVMContainer      = "kvm"
	otherKVMContainer = "kvm-device"
	kvmDevice         = "/dev/kvm"
	// volumeDevices holds the device node, at devicesDir of the init container.
	volumeDevices = "devices"
	devicesDir    = "/run/vmop-devices"
)

func addAccelerator(vm *spec.VirtualMachine, pod *corev1.Pod, s *Settings) {
	if vm.Spec.VM.Accelerator == spec.AcceleratorTCG {
		return
	}
	c := &pod.Spec.Containers[0]
	switch {
	case s.KVMResource != "":
		// Kubernetes uses the limit of an extended resource as its request.
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		if _, given := c.Resources.Limits[s.KVMResource]; !given {
			c.Resources.Limits[s.KVMResource] = resource.MustParse("1")
		}
	case s.Privileged:
		addPrivileges(pod)
	}
}

// addPrivileges gives the runner all devices of its node. It is not root, and the node's /dev/kvm
// may belong to a group whose number only the node knows: instead it gets a device node of its
// own in that place, owned by its group. Every QEMU can open a path; a file descriptor works only
// with QEMU 9.0 and later.
func addPrivileges(pod *corev1.Pod) {
	c := &pod.Spec.Containers[0]
	// Kubernetes refuses a privileged container without AllowPrivilegeEscalation.
	yes := true
	c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = &yes, &yes
	// In memory, because the node's own file systems may be mounted without devices.
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeDevices, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("1Mi"))},
	}})
	name := KVMContainer
	if c.Name == name {
		name = otherKVMContainer
	}
	node := path.Base(kvmDevice)
	made := briefContainer(c, name, []string{"-make-kvm", path.Join(devicesDir, node)}, []corev1.VolumeMount{{Name: volumeDevices, MountPath: devicesDir}}, "MKNOD")
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, made)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeDevices, MountPath: kvmDevice, SubPath: node})
}

func deepCopies[T any](in []T, copyInto func(in, out *T)) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i := range in {
		copyInto(&in[i], &out[i])
	}
	return out
}
