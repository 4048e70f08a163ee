package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// exportPort is the port of a pod that exports a disk.
	exportPort = 10809
	// exportCertificates is the directory of its key.
	exportCertificates = "/var/run/vmop-export"
	// exportTime is the lifetime of its certificate, of which only the key counts.
	exportTime               = 100 * 365 * 24 * time.Hour
	exportVolume, exportKeys = "disk", "keys"
)

// ExportPort returns the port of a pod that exports a disk, as in an address.
func ExportPort() string { return strconv.Itoa(exportPort) }

// ExportPod returns the name of the pod that exports the disk of an attachment, and of the Secret
// with its key. There is one at a time.
func ExportPod(attachment string) string { return attachment + "-vmbda" }

// ExportsTo identifies the client of an attachment's pod, for an attachment that has a connection
// in its status: a machine, its run in a pod, and the key of that run.
func ExportsTo(a *spec.VirtualMachineBlockDeviceAttachment) string {
	c := a.Status.Connection
	return a.Spec.VirtualMachineName + " " + string(c.PodUID) + " " + c.Key
}

// ExportsFor returns the machine that a pod exports a disk to; empty for other pods.
func ExportsFor(pod *corev1.Pod) string {
	machine, _, _ := strings.Cut(pod.Annotations[names.AnnotationExportsTo], " ")
	return machine
}

// Attached is a volume that a machine's pod has for an attachment, for the whole life of the pod.
type Attached struct {
	// Claim is its volume claim; Block is true if that is a block device.
	Claim string `json:"claim"`
	Block bool   `json:"block,omitempty"`
	// For is the UID of the attachment.
	For types.UID `json:"for"`
}

// volume hashes the claim's name, which may be longer than a volume's.
func (a *Attached) volume() string {
	sum := sha256.Sum256([]byte(a.Claim))
	return "attached-" + hex.EncodeToString(sum[:10])
}

// Path returns the path of the disk in the pod.
func (a *Attached) Path() string {
	if a.Block {
		return path.Join(machineconfig.DiskDeviceDir, a.volume())
	}
	return path.Join(machineconfig.DiskMountDir, a.volume(), machineconfig.DiskFile)
}

// AddAttached adds the volumes of attachments to a new pod of a machine. They are not part of the
// pod's digest: a pod is not replaced because of them.
func AddAttached(pod *corev1.Pod, all []Attached) {
	if len(all) == 0 {
		return
	}
	c := &pod.Spec.Containers[0]
	for i := range all {
		a := &all[i]
		name := a.volume()
		pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(name, a.Claim))
		if !a.Block {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path.Dir(a.Path())})
			continue
		}
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: a.Path()})
		if s := pod.Spec.SecurityContext; !slices.Contains(s.SupplementalGroups, diskGroup) {
			s.SupplementalGroups = append(s.SupplementalGroups, diskGroup)
		}
	}
	data, _ := json.Marshal(all) // strings always encode
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[names.AnnotationAttached] = string(data)
}

// AttachedBy returns the volumes that a pod has for attachments. Entries about claims that the
// pod does not have are ignored.
func AttachedBy(pod *corev1.Pod) []Attached {
	text := pod.Annotations[names.AnnotationAttached]
	if text == "" {
		return nil
	}
	var all []Attached
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	has := PodClaims(pod)
	return slices.DeleteFunc(all, func(a Attached) bool { return !slices.Contains(has, a.Claim) })
}

const ownAttachmentPrefix = 39

// ownAttachmentName includes the machine's UID, so that no other attachment has the name by
// chance.
func ownAttachmentName(vm *spec.VirtualMachine, claim string) string {
	sum := sha256.Sum256([]byte(string(vm.UID) + "\x00" + claim))
	return strings.TrimRight(vm.Name[:min(len(vm.Name), ownAttachmentPrefix)], "-.") + "-" + hex.EncodeToString(sum[:10])
}

// OwnAttachment returns the attachment for a disk added to the manifest of a running machine of a
// cluster. It is deleted with the machine, when the disk leaves the manifest, or when the machine
// ends. It is nil without a machine or a disk.
func OwnAttachment(vm *spec.VirtualMachine, disk *machineconfig.Disk) *spec.VirtualMachineBlockDeviceAttachment {
	if vm == nil || disk == nil {
		return nil
	}
	device := spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: disk.Claim}
	if disk.Ref != nil {
		device = spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: disk.Ref.Name}
	}
	a := spec.NewAttachment(vm.Namespace, ownAttachmentName(vm, disk.Claim), vm.Name, device)
	a.Labels = InstanceLabels(vm.Name)
	a.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine, Name: vm.Name, UID: vm.UID, Controller: new(true),
	}}
	return a
}

// OwnsAttachment reports whether an attachment was created for a machine by [OwnAttachment],
// rather than by a user, whatever its name or content.
func OwnsAttachment(vm *spec.VirtualMachine, a *spec.VirtualMachineBlockDeviceAttachment) bool {
	if vm == nil || a == nil || vm.UID == "" || a.Spec.VirtualMachineName != vm.Name || a.Name != ownAttachmentName(vm, a.Spec.BlockDeviceRef.ClaimName()) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(a)
	return owner != nil && owner.UID == vm.UID
}

func attachmentMeta(a *spec.VirtualMachineBlockDeviceAttachment) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: ExportPod(a.Name), Namespace: a.Namespace,
		Labels:      map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy, names.LabelAttachment: a.Name},
		Annotations: map[string]string{names.AnnotationMadeFor: string(a.UID)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: spec.GroupVersion().String(), Kind: spec.KindAttachment, Name: a.Name, UID: a.UID, Controller: new(true),
		}},
	}
}

// ExportKey returns the Secret with the key of the pod that exports the disk of an attachment,
// without its data, and the certificate to create for it. It is deleted with the attachment.
func ExportKey(a *spec.VirtualMachineBlockDeviceAttachment, now time.Time) (*corev1.Secret, Certificate) {
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: attachmentMeta(a), Type: corev1.SecretTypeTLS,
	}
	s.Labels[names.LabelComponent] = names.ComponentAttachment
	from := now.Add(-clockSkew).UTC().Truncate(time.Second)
	return s, Certificate{CommonName: "vmop-export", Hosts: []string{"localhost"}, NotBefore: from, NotAfter: from.Add(exportTime)}
}

// ExportFingerprint identifies to a machine the pod with the key of a Secret: the SHA-256 digest
// of its public key, in hexadecimal digits. It is empty for a Secret without a certificate.
func ExportFingerprint(s *corev1.Secret) string {
	c := parsed(s.Data[corev1.TLSCertKey])
	if c == nil {
		return ""
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// ExportJob returns the pod that exports the disk in a claim to the machine of an attachment with
// a connection in its status: on the machine's node, unprivileged, without a token, and with no
// volume but the claim, whose mode is given.
func ExportJob(a *spec.VirtualMachineBlockDeviceAttachment, vm *spec.VirtualMachine, node string, mode corev1.PersistentVolumeMode, s Settings) *corev1.Pod {
	yes, no := true, false
	user, policy := int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch
	// A machine that is being stopped needs its disks until its guest has ended.
	linger := vm.Spec.ShutdownSeconds() + TerminationReserve
	grace := linger + TerminationReserve
	c := *a.Status.Connection
	meta := attachmentMeta(a)
	meta.Labels[names.LabelComponent] = names.ComponentRunner
	meta.Annotations[names.AnnotationExportsTo] = ExportsTo(a)
	device := path.Join(machineconfig.DiskMountDir, exportVolume, machineconfig.DiskFile)
	if mode == corev1.PersistentVolumeBlock {
		device = path.Join(machineconfig.DiskDeviceDir, exportVolume)
	}
	container := corev1.Container{
		Name: "export", Image: ImporterImage(&s), ImagePullPolicy: s.RunnerPullPolicy,
		Args: []string{
			"export", "-disk=" + device, "-certificates=" + exportCertificates, "-client=" + c.Key,
			"-listen=:" + ExportPort(), "-runtime=" + path.Join(machineconfig.RuntimeBase, "export"), fmt.Sprintf("-linger=%ds", linger),
		},
		Env:   []corev1.EnvVar{{Name: "TMPDIR", Value: machineconfig.RuntimeBase}},
		Ports: []corev1.ContainerPort{{Name: "nbd", ContainerPort: exportPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: exportKeys, MountPath: exportCertificates, ReadOnly: true}, {Name: volumeRuntime, MountPath: machineconfig.RuntimeBase},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	security := &corev1.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &policy,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if mode == corev1.PersistentVolumeBlock {
		container.VolumeDevices = []corev1.VolumeDevice{{Name: exportVolume, DevicePath: device}}
		security.SupplementalGroups = []int64{diskGroup}
	} else {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: exportVolume, MountPath: path.Dir(device)})
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindPod}, ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName: names.ServiceAccount, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			// After a restart it is the same exporter at the same address.
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			// Affinity rather than nodeName, so that the scheduler binds the volume, or
			// provisions it, for the node.
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
				}}},
			}}},
			// It must run on its machine's node, whatever the node's taints.
			Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			PriorityClassName: vm.Spec.PriorityClassName,
			SecurityContext:   security,
			Volumes: []corev1.Volume{
				claimVolume(exportVolume, a.Spec.BlockDeviceRef.ClaimName()),
				{Name: exportKeys, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ExportPod(a.Name), DefaultMode: new(groupReads)}}},
				{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("16Mi"))}}},
			},
			Containers: []corev1.Container{container},
		},
	}
}
