package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TransferWait is how long a pod waits for an upload to begin, or to go on when it was
	// cut off, and likewise for a download.
	TransferWait = 10 * time.Minute

	transferVolume = "transfer"
	transferKeys   = "/run/secrets/transfer"
	// maxRequest is the longest request that is noted as it is.
	maxRequest = 64
)

// TransferKey is the name of the Secret with the key of uploads to the disk or image that
// a volume claim is made for.
func TransferKey(claim string) string { return claim + "-transfer" }

// UploadRequest is the last request for an upload to a disk or an image, or the one that
// a pod was made for; empty if there is none. A long one is its digest.
func UploadRequest(o metav1.Object) string {
	return request(o.GetAnnotations()[names.AnnotationUploadRequest])
}

func request(value string) string {
	if len(value) <= maxRequest {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// TransferKey is the Secret with the key that both ends of an upload have, without its
// data, and what is to be made for it. It goes with the disk or image.
func (f Filled) TransferKey(now time.Time) (*corev1.Secret, Certificate) {
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: f.object(TransferKey(f.claim)), Type: corev1.SecretTypeTLS,
	}
	s.Labels[names.LabelComponent] = names.ComponentTransfer
	from := now.Add(-clockSkew).UTC().Truncate(time.Second)
	// Where port forwarding leads to, for programs that look at names.
	return s, Certificate{CommonName: "vmop-transfer", Hosts: []string{"localhost", "127.0.0.1"}, NotBefore: from, NotAfter: from.Add(exportTime)}
}

// upload is what a pod is told that takes an upload.
func (f Filled) upload() *runnerconfig.ImportUpload {
	return &runnerconfig.ImportUpload{Port: runnerconfig.TransferPort, Keys: transferKeys, Checksum: f.source.Sum(), WaitSeconds: int(TransferWait / time.Second)}
}

// addTransferKey gives a pod the key of uploads and downloads as files.
func (f Filled) addTransferKey(pod *corev1.Pod) {
	mode := int32(0o440) // the runner's group, which FSGroup is
	item := func(key string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: path.Base(key)} }
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: transferVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: TransferKey(f.claim), DefaultMode: &mode, Items: []corev1.KeyToPath{item(corev1.TLSCertKey), item(corev1.TLSPrivateKeyKey)},
	}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: transferVolume, MountPath: transferKeys, ReadOnly: true})
}
