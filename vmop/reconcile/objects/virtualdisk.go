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
	"k8s.io/apimachinery/pkg/types"
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

// ClaimOfImage is the name of the volume claim of a VirtualImage.
func ClaimOfImage(name string) string { return spec.VirtualImageClaimName(name) }

// ClaimOfClusterImage is the name of the volume claim of a ClusterVirtualImage.
func ClaimOfClusterImage(name string) string { return spec.ClusterVirtualImageClaimName(name) }

// ImageOf is the image that a claim was made for, to which only the pod that fills it writes: its
// kind and name, which are empty if it is none.
func ImageOf(claim *corev1.PersistentVolumeClaim) (kind, name string) {
	if claim.Annotations[names.AnnotationMadeFor] == "" {
		return "", ""
	}
	for _, of := range []struct{ kind, label string }{{spec.KindImage, names.LabelImage}, {spec.KindClusterImage, names.LabelClusterImage}} {
		if name := claim.Labels[of.label]; name != "" {
			return of.kind, name
		}
	}
	return "", ""
}

// ImportPod is the name of the pod that fills the volume claim of a disk or image. There
// is one at a time.
func ImportPod(claim string) string { return claim + "-import" }

// Filled has a volume claim that is made for it and filled once: a disk or an image. Its fields are
// the differences of the kinds.
type Filled struct {
	kind, label, claim string
	// name and uid are its own; namespace is where what is made for it is.
	name, namespace string
	uid             types.UID
	size            resource.Quantity
	class           *string
	mode            corev1.PersistentVolumeMode
	access          corev1.PersistentVolumeAccessMode
	source          *spec.VirtualDiskSource
	// request is the last one for an upload, and download the last one for a download.
	request, download string
	// keep: it is an image, which is kept as it is.
	keep bool
	// server serves the image of the cluster that it is a copy of.
	server *Server
}

// FilledDisk is a disk as what is filled. The disk must be valid.
func FilledDisk(d *spec.VirtualDisk) Filled {
	c := &d.Spec.PersistentVolumeClaim
	return Filled{
		kind: spec.KindDisk, label: names.LabelDisk, claim: ClaimOfDisk(d.Name), name: d.Name, namespace: d.Namespace, uid: d.UID, request: UploadRequest(d), download: DownloadRequest(d),
		size: c.Size, class: c.StorageClassName, mode: d.Spec.VolumeMode(), access: corev1.ReadWriteOnce, source: d.Spec.DataSource,
	}
}

// FilledImage is [FilledDisk] for an image, which is kept as what it is.
func FilledImage(i *spec.VirtualImage) Filled {
	return filledImage(spec.KindImage, names.LabelImage, ClaimOfImage(i.Name), i.Namespace, &i.ObjectMeta, &i.Spec)
}

// FilledClusterImage is [FilledImage] for an image of the cluster, which is kept in a
// namespace.
func FilledClusterImage(i *spec.ClusterVirtualImage, namespace string) Filled {
	return filledImage(spec.KindClusterImage, names.LabelClusterImage, ClaimOfClusterImage(i.Name), namespace, &i.ObjectMeta, &i.Spec)
}

func filledImage(kind, label, claim, namespace string, meta *metav1.ObjectMeta, s *spec.VirtualImageSpec) Filled {
	c := &s.PersistentVolumeClaim
	return Filled{
		kind: kind, label: label, claim: claim, name: meta.Name, namespace: namespace, uid: meta.UID, request: UploadRequest(meta), download: DownloadRequest(meta),
		size: c.Size, class: c.StorageClassName, mode: corev1.PersistentVolumeFilesystem, access: cmp.Or(c.AccessMode, corev1.ReadWriteOnce),
		source: &s.DataSource, keep: true,
	}
}

// ClaimName is the name of the claim.
func (f Filled) ClaimName() string { return f.claim }

// PodName is the name of the pod that fills the claim.
func (f Filled) PodName() string { return ImportPod(f.claim) }

// Block reports whether it is a block device, and no file.
func (f Filled) Block() bool { return f.mode == corev1.PersistentVolumeBlock }

// object is the metadata of an object that goes with the disk or image. Its labels are
// those by which its pod is watched, and bounded by policies, as the pods of machines
// are; it has no machine's name.
func (f Filled) object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: f.namespace,
		Labels:      map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy, f.label: f.name},
		Annotations: map[string]string{names.AnnotationMadeFor: string(f.uid)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: spec.GroupVersion().String(), Kind: f.kind, Name: f.name, UID: f.uid, Controller: new(true),
		}},
	}
}

// VolumeClaim is the claim. The disk or image owns it: it is deleted with that, unless
// that is deleted with --cascade=orphan.
func (f Filled) VolumeClaim() *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: names.KindClaim},
		ObjectMeta: f.object(f.claim),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{f.access},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: f.size.DeepCopy()}},
			VolumeMode:  new(f.mode),
		},
	}
	if f.class != nil {
		pvc.Spec.StorageClassName = new(*f.class)
	}
	if f.Block() && f.source != nil {
		pvc.Annotations[names.AnnotationToBeFilled] = string(f.uid)
	}
	return pvc
}

// ImporterImage is the image of pods that fill disks: that of machines which name none.
func ImporterImage(s *Settings) string {
	return RunnerImage(&spec.VirtualMachine{Spec: spec.VirtualMachineSpec{Image: &spec.RunnerImage{Source: DefaultImage()}}}, s)
}

// ImportJob is the pod that fills the claim: one with the rights of an ordinary program,
// no token, and the claim alone. The source is the claim of the disk or image that is
// copied, which it only reads; nil if it is no copy of one.
func (f Filled) ImportJob(s Settings, source *corev1.PersistentVolumeClaim) *corev1.Pod {
	return f.importJob(s, source, "")
}

// CloneJob is [Filled.ImportJob] for a claim that is to be a clone of that of its source,
// see [Filled.Clone]: the pod looks whether it is one, and copies if not.
func (f Filled) CloneJob(s Settings, claim, source *corev1.PersistentVolumeClaim) *corev1.Pod {
	if claim == nil {
		return f.importJob(s, source, "")
	}
	return f.importJob(s, source, claim.Annotations[names.AnnotationCloneOf])
}

func (f Filled) importJob(s Settings, source *corev1.PersistentVolumeClaim, cloneOf string) *corev1.Pod {
	job := f.job(source, cloneOf)
	text, _ := job.Encode() // texts and numbers
	limit := resource.MustParse("64Mi")
	pod := f.program(&s, f.PodName(), corev1.Container{
		Name:         "import",
		Args:         []string{"-import"},
		Env:          []corev1.EnvVar{{Name: runnerconfig.ImportEnv, Value: text}, {Name: "TMPDIR", Value: machineconfig.RuntimeBase}},
		VolumeMounts: []corev1.VolumeMount{{Name: volumeRuntime, MountPath: machineconfig.RuntimeBase}},
		// What unpacks an image takes some; what a quota of the namespace counts is there.
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
	})
	pod.Spec.Volumes = []corev1.Volume{
		claimVolume(importVolume, f.claim),
		{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit},
		}},
	}
	if job.Upload != nil {
		pod.Annotations[names.AnnotationUploadRequest] = f.request
		addTransferKey(pod, TransferKey(f.claim))
	}
	if f.Block() {
		addDevice(pod, importVolume)
		if job.Scratch != "" {
			f.addScratch(pod)
		}
	} else {
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: importVolume, MountPath: path.Dir(job.File)})
	}
	if source != nil && job.Copy != nil {
		addSource(pod, source)
	}
	if from := f.source; from != nil && from.ContainerImage != nil && from.ContainerImage.ImagePullSecret != nil {
		addPullSecret(pod, from.ContainerImage.ImagePullSecret.Name)
	}
	return pod
}

// program is a pod that does one thing with the claim, once: with the rights of an ordinary
// program, and no token.
func (f Filled) program(s *Settings, name string, container corev1.Container) *corev1.Pod {
	yes, no := true, false
	user, policy, seconds := int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch, int64(importSeconds)
	meta := f.object(name)
	meta.Labels[names.LabelComponent] = names.ComponentRunner
	container.Image, container.ImagePullPolicy = ImporterImage(s), s.RunnerPullPolicy
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return &corev1.Pod{
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
			Containers: []corev1.Container{container},
		},
	}
}

// job is the task of the pod; cloneOf is whose volume is to have been cloned.
func (f Filled) job(source *corev1.PersistentVolumeClaim, cloneOf string) runnerconfig.Import {
	job := runnerconfig.Import{
		Disk: string(f.uid), File: path.Join(machineconfig.DiskMountDir, importVolume, machineconfig.DiskFile), Size: spec.Bytes(f.size), Keep: f.keep,
		Digest: f.kind == spec.KindClusterImage, ProgressPort: runnerconfig.ImportProgressPort,
	}
	if f.Block() {
		job.File, job.Device = path.Join(machineconfig.DiskDeviceDir, importVolume), true
	}
	from := f.source
	switch {
	case from == nil:
	case f.server != nil:
		job.Served = f.server.served()
	case from.ObjectRef != nil && from.ObjectRef.Kind == spec.KindVolumeSnapshot:
		job.Restored = &runnerconfig.ImportRestored{Format: cmp.Or(from.ObjectRef.Format, "raw")}
	case from.ObjectRef != nil:
		job.Copy = &runnerconfig.ImportCopy{File: path.Join(machineconfig.DiskDeviceDir, sourceVolume), Format: "raw"}
		if source != nil && !isBlock(source) {
			job.Copy.File = path.Join(machineconfig.DiskMountDir, sourceVolume, machineconfig.DiskFile)
			job.Copy.Format = cmp.Or(source.Annotations[names.AnnotationDiskFormat], "raw")
			if job.Copy.Format == runnerconfig.FormatISO { // for all others a raw image
				job.Copy.Format, job.Copy.CD = "raw", f.keep
			}
		}
		job.Copy.CloneOf, job.Copy.Whole = cloneOf, cloneOf != "" && f.ofDisk()
	case from.Type == spec.DiskSourceUpload:
		job.Upload = f.upload()
	default:
		job.Image = &runnerconfig.DriveImage{Source: from.Location(), Checksum: from.Sum()}
		if h := from.HTTP; h != nil {
			job.Image.CABundle = h.CABundle
		}
		if c := from.ContainerImage; c != nil {
			job.Image.Path, job.Image.CABundle = c.Path, c.CABundle
		}
		if job.Device {
			job.Scratch = path.Join(machineconfig.DiskMountDir, scratchVolume)
		}
	}
	return job
}

// addDevice gives a pod a block device, as a member of the group that such have.
func addDevice(pod *corev1.Pod, volume string) {
	c := &pod.Spec.Containers[0]
	c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: volume, DevicePath: path.Join(machineconfig.DiskDeviceDir, volume)})
	pod.Spec.SecurityContext.SupplementalGroups = []int64{diskGroup}
}

// scratchVolume is the volume for what is downloaded, where the disk is no file.
const scratchVolume = "scratch"

// addScratch gives a pod a volume of the disk's storage class for what is downloaded: a
// claim that Kubernetes makes for the pod, and deletes with it. What is packed is there
// beside what it is unpacked to, and a qcow2 image has some per cent beside its data.
func (f Filled) addScratch(pod *corev1.Pod) {
	room := resource.NewQuantity(spec.Bytes(f.size)+spec.Bytes(f.size)/4+scratchRoom, resource.BinarySI)
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *room}},
		VolumeMode:       new(corev1.PersistentVolumeFilesystem),
		StorageClassName: f.class,
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: scratchVolume, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}},
	}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scratchVolume, MountPath: path.Join(machineconfig.DiskMountDir, scratchVolume)})
}

// scratchRoom is what such a volume has at least beside the image, in bytes: what a file
// system takes of it.
const scratchRoom = 256 << 20

// sourceVolume is the volume with what is only read, such as the disk that another one is
// a copy of, and pullVolume that with the credentials for a registry.
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
		addDevice(pod, sourceVolume)
	} else {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: sourceVolume, MountPath: path.Join(machineconfig.DiskMountDir, sourceVolume), ReadOnly: true})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
}

// OnlyCopies reports whether a pod uses a claim as nothing but what it copies into the
// claim of another disk or image, or gives to who downloads it: it reads it.
func OnlyCopies(pod *corev1.Pod, claim string) bool {
	if pod == nil || pod.Labels[names.LabelDisk] == "" && pod.Labels[names.LabelImage] == "" {
		return false
	}
	reads := false
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName == claim {
			if v.Name != sourceVolume {
				return false
			}
			reads = true
		}
	}
	return reads
}

// addPullSecret gives a pod the credentials of a Secret as a file where the client of
// registries looks for them: they are in no argument, variable or log.
func addPullSecret(pod *corev1.Pod, secret string) {
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: pullVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(groupReads), Items: []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}},
	}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: pullVolume, MountPath: pullDir, ReadOnly: true})
	c.Env = append(c.Env, corev1.EnvVar{Name: "DOCKER_CONFIG", Value: pullDir})
}
