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
	// TransferWait is how long a pod waits for an upload to begin, or to go on when it was
	// cut off, and likewise for a download.
	TransferWait = 10 * time.Minute

	transferVolume = "transfer"
	transferKeys   = "/run/secrets/transfer"
)

// TransferKey is the name of the Secret with the key of uploads to the disk or image that
// a volume claim is made for.
func TransferKey(claim string) string { return claim + "-transfer" }

// DownloadName is the name of the pod that gives a download of the disk or image that a
// volume claim is made for, and of the Secret with its key. There is one at a time.
func DownloadName(claim string) string { return claim + "-download" }

// TransferKey is the Secret with the key that both ends of an upload have, without its
// data, and what is to be made for it. It goes with the disk or image.
func (f Filled) TransferKey(now time.Time) (*corev1.Secret, Certificate) {
	return f.transferKey(TransferKey(f.claim), now)
}

// DownloadKey is the same for a download. It goes with the pod, so that each pod has
// another one: who once had one cannot read what a later one gives.
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
	// Where port forwarding leads to, for programs that look at names.
	return s, Certificate{CommonName: "vmop-transfer", Hosts: []string{"localhost", "127.0.0.1"}, NotBefore: from, NotAfter: from.Add(exportTime)}
}

// DownloadJob is the pod that gives what is in the claim to who has asked for it last. It
// only reads, what is in a file in the format that is given. It does not start before there
// is the Secret with its key.
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
		// A device that is read only is one that some kinds of storage do not have.
		addDevice(pod, sourceVolume)
	} else {
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: sourceVolume, MountPath: path.Dir(at), ReadOnly: true}}
	}
	addTransferKey(pod, DownloadName(f.claim))
	return pod
}

// upload is what a pod is told that takes an upload.
func (f Filled) upload() *runnerconfig.ImportUpload {
	return &runnerconfig.ImportUpload{Port: runnerconfig.TransferPort, Keys: transferKeys, Checksum: f.source.Sum(), WaitSeconds: int(TransferWait / time.Second)}
}

// addTransferKey gives a pod the key of an upload or a download as files.
func addTransferKey(pod *corev1.Pod, secret string) {
	item := func(key string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: path.Base(key)} }
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: transferVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(groupReads), Items: []corev1.KeyToPath{item(corev1.TLSCertKey), item(corev1.TLSPrivateKeyKey)},
	}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: transferVolume, MountPath: transferKeys, ReadOnly: true})
}
