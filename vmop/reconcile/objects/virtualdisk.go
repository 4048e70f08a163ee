package objects

import (
	"cmp"
	"math"
	"path"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	importVolume = "disk"
)

// ImageOf returns kind and name of the image that a claim was created for, to which only the pod
// that fills it writes; both are empty for other claims.
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

// ImportJob returns the pod that fills the claim: unprivileged, without a token, and with the
// claim alone. The source is the claim of the disk or image to copy, mounted read-only; nil if
// there is none.
func (f Filled) ImportJob(s Settings, source *corev1.PersistentVolumeClaim) *corev1.Pod {
	return f.importJob(s, source, "")
}

// CloneJob is [Filled.ImportJob] for a claim that is to be a clone of its source's, see
// [Filled.Clone]: the pod verifies that, and copies if it is not.
func (f Filled) CloneJob(s Settings, claim, source *corev1.PersistentVolumeClaim) *corev1.Pod {
	if claim == nil {
		return f.importJob(s, source, "")
	}
	return f.importJob(s, source, claim.Annotations[names.AnnotationCloneOf])
}

func (f Filled) importJob(s Settings, source *corev1.PersistentVolumeClaim, cloneOf string) *corev1.Pod {
	job := f.job(source, cloneOf)
	text, _ := job.Encode() // strings and numbers always encode
	limit := resource.MustParse("64Mi")
	pod := f.program(&s, f.PodName(), corev1.Container{
		Name:         "import",
		Args:         []string{"-import"},
		Env:          []corev1.EnvVar{{Name: runnerconfig.ImportEnv, Value: text}, {Name: "TMPDIR", Value: machineconfig.RuntimeBase}},
		VolumeMounts: []corev1.VolumeMount{{Name: volumeRuntime, MountPath: machineconfig.RuntimeBase}},
		// Unpacking an image takes some; a quota of the namespace may require all of these.
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
			if job.Copy.Format == runnerconfig.FormatISO { // raw for all others
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

// scratchVolume is for downloads, where the disk is no file.
const scratchVolume = "scratch"

// addScratch adds a volume of the disk's storage class for downloads, from a claim that
// Kubernetes creates for the pod and deletes with it. It holds packed and unpacked data at once,
// and a qcow2 image is a few percent larger than its data.
func (f Filled) addScratch(pod *corev1.Pod) {
	room := int64(math.MaxInt64) // there are no larger quantities
	if size := spec.Bytes(f.size); size < (room-scratchRoom)/5*4 {
		room = size + size/4 + scratchRoom
	}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(room, resource.BinarySI)}},
		VolumeMode:       new(corev1.PersistentVolumeFilesystem),
		StorageClassName: f.class,
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: scratchVolume, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}},
	}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scratchVolume, MountPath: path.Join(machineconfig.DiskMountDir, scratchVolume)})
}

// scratchRoom is the minimum of such a volume beyond the image, in bytes, for its file system.
const scratchRoom = 256 << 20

func addSource(pod *corev1.Pod, source *corev1.PersistentVolumeClaim) {
	c := &pod.Spec.Containers[0]
	v := claimVolume(sourceVolume, source.Name)
	if isBlock(source) {
		// Some kinds of storage have no read-only devices.
		addDevice(pod, sourceVolume)
	} else {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: sourceVolume, MountPath: path.Join(machineconfig.DiskMountDir, sourceVolume), ReadOnly: true})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
}

// OnlyCopies reports whether a pod only reads a claim: to copy it into the claim of another disk
// or image, or to serve it for download.
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

// CopyJob is [Filled.ImportJob] for a copy of an image of the cluster that a pod serves.
func (f Filled) CopyJob(s Settings, from Server) *corev1.Pod {
	f.server = &from
	pod := f.ImportJob(s, nil)
	addKey(pod, CopyKeyName(f.claim))
	return pod
}
