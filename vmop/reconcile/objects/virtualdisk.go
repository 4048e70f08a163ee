package objects

import (
	"cmp"
	"path"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// importVolume is the volume of a pod that fills a disk.
	importVolume = "disk"
	// importSeconds is how long one attempt to fill a disk may take. What was downloaded
	// by then is gone on with where the server lets that be.
	importSeconds = 24 * 3600
)

// ClaimOfDisk is the name of the volume claim of a VirtualDisk.
func ClaimOfDisk(name string) string { return spec.VirtualDiskClaimName(name) }

// ImportPod is the name of the pod that fills a VirtualDisk. There is one at a time.
func ImportPod(name string) string { return spec.VirtualDiskClaimName(name) + "-import" }

// diskLabels are those of what belongs to a VirtualDisk. Its pod is watched, and bounded
// by policies, as the pods of machines are, and has no machine's name.
func diskLabels(disk string) map[string]string {
	return map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy, names.LabelDisk: disk}
}

// diskMeta is the metadata of an object that goes with its disk.
func diskMeta(d *spec.VirtualDisk, name string, controller bool) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: d.Namespace, Labels: diskLabels(d.Name),
		Annotations: map[string]string{names.AnnotationMadeFor: string(d.UID)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: spec.GroupVersion().String(), Kind: spec.KindDisk, Name: d.Name, UID: d.UID, Controller: &controller,
		}},
	}
}

// VirtualDiskClaim is the volume claim of a disk. The disk owns it: it is deleted with
// the disk, unless that is deleted with --cascade=orphan.
func VirtualDiskClaim(d *spec.VirtualDisk) *corev1.PersistentVolumeClaim {
	mode := d.Spec.VolumeMode()
	c := &d.Spec.PersistentVolumeClaim
	pvc := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: names.KindClaim},
		ObjectMeta: diskMeta(d, ClaimOfDisk(d.Name), true),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: c.Size.DeepCopy()}},
			VolumeMode:  &mode,
		},
	}
	if c.StorageClassName != nil {
		class := *c.StorageClassName
		pvc.Spec.StorageClassName = &class
	}
	return pvc
}

// ImporterImage is the image of pods that fill disks: that of machines which name none.
func ImporterImage(s *Settings) string {
	return RunnerImage(&spec.VirtualMachine{Spec: spec.VirtualMachineSpec{Image: &spec.RunnerImage{Source: DefaultImage()}}}, s)
}

// ImportJob is the pod that fills a disk, which must be valid: one with the rights of an
// ordinary program, no token, and the disk's volume alone. The claim is that of the
// disk that it is a copy of, which it only reads; nil if it is none.
func ImportJob(d *spec.VirtualDisk, s Settings, source *corev1.PersistentVolumeClaim) *corev1.Pod {
	yes, no := true, false
	user, policy, seconds := int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch, int64(importSeconds)
	dir := path.Join(machineconfig.DiskMountDir, importVolume)
	job := runnerconfig.Import{Disk: string(d.UID), File: path.Join(dir, machineconfig.DiskFile), Size: spec.Bytes(d.Spec.PersistentVolumeClaim.Size), ProgressPort: runnerconfig.ImportProgressPort}
	from := d.Spec.DataSource
	switch {
	case from == nil:
	case from.ObjectRef != nil:
		job.Copy = &runnerconfig.ImportCopy{File: path.Join(machineconfig.DiskDeviceDir, sourceVolume), Format: "raw"}
		if source != nil && !isBlock(source) {
			job.Copy.File = path.Join(machineconfig.DiskMountDir, sourceVolume, machineconfig.DiskFile)
			job.Copy.Format = cmp.Or(source.Annotations[names.AnnotationDiskFormat], "raw")
		}
	default:
		job.Image = &runnerconfig.DriveImage{Source: from.Location(), Checksum: from.Sum()}
		if h := from.HTTP; h != nil {
			job.Image.CABundle = h.CABundle
		}
		if c := from.ContainerImage; c != nil {
			job.Image.Path, job.Image.CABundle = c.Path, c.CABundle
		}
	}
	text, _ := job.Encode() // texts and numbers
	limit := resource.MustParse("64Mi")
	meta := diskMeta(d, ImportPod(d.Name), true)
	meta.Labels[names.LabelComponent] = names.ComponentRunner
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: names.KindPod},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			// The account has what the nodes pull the image with. Nothing in the pod
			// has a token of it.
			ServiceAccountName:           names.ServiceAccount,
			AutomountServiceAccountToken: &no,
			EnableServiceLinks:           &no,
			RestartPolicy:                corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:        &seconds,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
				FSGroup: &user, FSGroupChangePolicy: &policy,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{
				claimVolume(importVolume, ClaimOfDisk(d.Name)),
				{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{
					EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit},
				}},
			},
			Containers: []corev1.Container{{
				Name: "import", Image: ImporterImage(&s), ImagePullPolicy: s.RunnerPullPolicy,
				Args: []string{"-import"},
				Env:  []corev1.EnvVar{{Name: runnerconfig.ImportEnv, Value: text}, {Name: "TMPDIR", Value: machineconfig.RuntimeBase}},
				VolumeMounts: []corev1.VolumeMount{
					{Name: importVolume, MountPath: dir}, {Name: volumeRuntime, MountPath: machineconfig.RuntimeBase},
				},
				// What unpacks an image takes some; what a quota of the namespace
				// counts is there.
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					ReadOnlyRootFilesystem:   &yes,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if source != nil && job.Copy != nil {
		addSource(pod, source)
	}
	if from != nil && from.ContainerImage != nil && from.ContainerImage.ImagePullSecret != nil {
		addPullSecret(pod, from.ContainerImage.ImagePullSecret.Name)
	}
	return pod
}

// sourceVolume is the volume with the disk that another one is a copy of, and pullVolume
// that with the credentials for a registry.
const (
	sourceVolume = "source"
	pullVolume   = "registry"
	pullDir      = "/run/secrets/registry"
)

func isBlock(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// addSource gives a pod the disk that it is to copy, to read.
func addSource(pod *corev1.Pod, source *corev1.PersistentVolumeClaim) {
	c := &pod.Spec.Containers[0]
	v := claimVolume(sourceVolume, source.Name)
	if isBlock(source) {
		// A device that is read only is one that some kinds of storage do not have.
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: sourceVolume, DevicePath: path.Join(machineconfig.DiskDeviceDir, sourceVolume)})
		pod.Spec.SecurityContext.SupplementalGroups = []int64{diskGroup}
	} else {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: sourceVolume, MountPath: path.Join(machineconfig.DiskMountDir, sourceVolume), ReadOnly: true})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
}

// addPullSecret gives a pod the credentials of a Secret as a file where the client of
// registries looks for them: they are in no argument, variable or log.
func addPullSecret(pod *corev1.Pod, secret string) {
	mode := int32(0o440) // the runner's group, which FSGroup is
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: pullVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}},
	}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: pullVolume, MountPath: pullDir, ReadOnly: true})
	c.Env = append(c.Env, corev1.EnvVar{Name: "DOCKER_CONFIG", Value: pullDir})
}
