package objects

import (
	"path"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TransferWait is how long a pod waits for an upload or download to begin, or to be resumed.
	TransferWait = 10 * time.Minute

	transferVolume = "transfer"
	transferKeys   = "/run/secrets/transfer"
)

// TransferKey returns the name of the Secret with the key of uploads to the disk or image that a
// volume claim was created for.
func TransferKey(claim string) string { return claim + "-transfer" }

// DownloadName returns the name of the pod that serves a download of the disk or image that a
// volume claim was created for, and of the Secret with its key. There is one at a time.
func DownloadName(claim string) string { return claim + "-download" }

// TransferKey returns the Secret with the key that both ends of an upload have, without its data,
// and the certificate to create for it. It is deleted with the disk or image.
func (f Filled) TransferKey(now time.Time) (*corev1.Secret, Certificate) {
	return f.transferKey(TransferKey(f.claim), now)
}

// DownloadKey is [Filled.TransferKey] for a download. It is deleted with the pod, so that each
// pod has another key and a former client cannot read what a later pod serves.
func (f Filled) DownloadKey(pod *corev1.Pod, now time.Time) (*corev1.Secret, Certificate) {
	s, c := f.transferKey(DownloadName(f.claim), now)
	s.OwnerReferences = nil
	if pod != nil {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: names.KindPod, Name: pod.Name, UID: pod.UID}}
	}
	return s, c
}

func (f Filled) transferKey(name string, now time.Time) (*corev1.Secret, Certificate) {
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: f.object(name), Type: corev1.SecretTypeTLS,
	}
	s.Labels[names.LabelComponent] = names.ComponentTransfer
	from := now.Add(-clockSkew).UTC().Truncate(time.Second)
	// For clients of port forwarding that verify names.
	return s, Certificate{CommonName: "vmop-transfer", Hosts: []string{"localhost", "127.0.0.1"}, NotBefore: from, NotAfter: from.Add(exportTime)}
}

// DownloadJob returns the pod that serves what is in the claim to the last client that requested
// it. It mounts the claim read-only; format is that of a file. It does not start before the
// Secret with its key exists.
func (f Filled) DownloadJob(s Settings, format string) *corev1.Pod {
	at := path.Join(machineconfig.DiskDeviceDir, sourceVolume)
	if !f.Block() {
		at = path.Join(machineconfig.DiskMountDir, sourceVolume, machineconfig.DiskFile)
	}
	pod := f.program(&s, DownloadName(f.claim), corev1.Container{
		Name: "download",
		Args: []string{"download", "-image=" + at, "-format=" + format, "-certificates=" + transferKeys, "-wait=" + TransferWait.String()},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
	})
	pod.Annotations[names.AnnotationDownloadRequest] = f.download
	pod.Spec.Volumes = []corev1.Volume{claimVolume(sourceVolume, f.claim)}
	if f.Block() {
		// Some kinds of storage have no read-only devices.
		addDevice(pod, sourceVolume)
	} else {
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: sourceVolume, MountPath: path.Dir(at), ReadOnly: true}}
	}
	addTransferKey(pod, DownloadName(f.claim))
	return pod
}

func (f Filled) upload() *runnerconfig.ImportUpload {
	return &runnerconfig.ImportUpload{Port: runnerconfig.TransferPort, Keys: transferKeys, Checksum: f.source.Sum(), WaitSeconds: int(TransferWait / time.Second)}
}

func addTransferKey(pod *corev1.Pod, secret string) {
	item := func(key string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: path.Base(key)} }
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: transferVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(groupReads), Items: []corev1.KeyToPath{item(corev1.TLSCertKey), item(corev1.TLSPrivateKeyKey)},
	}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: transferVolume, MountPath: transferKeys, ReadOnly: true})
}
