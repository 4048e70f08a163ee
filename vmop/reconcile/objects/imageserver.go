package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	servePort = 10812
	// serveVolume is its volume; keyVolume, at keyDir, holds its key, and that of the pod that
	// copies the image.
	serveVolume, keyVolume = "image", "keys"
	keyDir                 = "/var/run/vmop-image"
)

// Copier is a disk or image that is made of an image of the cluster.
type Copier struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// Key is the fingerprint of the key of the pod that fills it.
	Key string
}

// String returns the value of [names.AnnotationServesTo].
func (c Copier) String() string {
	return c.Kind + " " + c.Namespace + "/" + c.Name + " " + string(c.UID) + " " + c.Key
}

// ServedBy returns what a pod serves an image of the cluster to; the zero value for other pods.
func ServedBy(pod *corev1.Pod) Copier {
	f := strings.Fields(pod.Annotations[names.AnnotationServesTo])
	if len(f) != 4 {
		return Copier{}
	}
	namespace, name, _ := strings.Cut(f[1], "/")
	return Copier{Kind: f[0], Namespace: namespace, Name: name, UID: types.UID(f[2]), Key: f[3]}
}

// ServerPod returns the name of the pod that serves an image of the cluster to a disk or image.
// There is one at a time.
func ServerPod(image string, to types.UID) string {
	sum := sha256.Sum256([]byte(to))
	return ClaimOfClusterImage(image) + "-" + hex.EncodeToString(sum[:5])
}

// ServerKeyName returns the name of the Secret with the key of the pods that serve an image of
// the cluster.
func ServerKeyName(image string) string { return ClaimOfClusterImage(image) + "-key" }

// CopyKeyName returns the name of the Secret with the key of the pod that fills a claim by a copy
// of an image of the cluster.
func CopyKeyName(claim string) string { return claim + "-key" }

// ServerKey returns the Secret with the key of the pods that serve an image of the cluster,
// without its data, and the certificate to create for it. It is deleted with the image.
func ServerKey(i *spec.ClusterVirtualImage, namespace string, now time.Time) (*corev1.Secret, Certificate) {
	return FilledClusterImage(i, namespace).key(ServerKeyName(i.Name), i.Name, now)
}

// CopyKey returns the Secret with the key of the pod that fills the claim by a copy of an image
// of the cluster, without its data, and the certificate to create for it. It is deleted with the
// disk or image.
func (f Filled) CopyKey(image string, now time.Time) (*corev1.Secret, Certificate) {
	return f.key(CopyKeyName(f.claim), image, now)
}

func (f Filled) key(name, image string, now time.Time) (*corev1.Secret, Certificate) {
	s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindSecret}, ObjectMeta: f.object(name), Type: corev1.SecretTypeTLS}
	s.Labels[names.LabelComponent], s.Labels[names.LabelClusterImage] = names.ComponentImageKey, image
	from := now.Add(-clockSkew).UTC().Truncate(time.Second)
	return s, Certificate{CommonName: "vmop-image", Hosts: []string{"localhost"}, NotBefore: from, NotAfter: from.Add(exportTime)}
}

func (s *Server) served() *runnerconfig.ImportServed {
	length, _ := strconv.ParseInt(s.Claim.Annotations[names.AnnotationImageLength], 10, 64)
	out := &runnerconfig.ImportServed{
		Address: net.JoinHostPort(s.Address, strconv.Itoa(servePort)), Fingerprint: s.Key, Certificates: keyDir,
		Format: cmp.Or(s.Claim.Annotations[names.AnnotationDiskFormat], "raw"), Length: length, SHA256: s.Claim.Annotations[names.AnnotationImageDigest],
	}
	if out.Format == runnerconfig.FormatISO { // raw for all others
		out.Format, out.CD = "raw", true
	}
	return out
}

func addKey(pod *corev1.Pod, secret string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: keyVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(groupReads)}}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: keyVolume, MountPath: keyDir, ReadOnly: true})
}

// ServerJob returns the pod that serves an image of the cluster to a disk or image: unprivileged,
// without a token, and with the claim of the image read-only.
func ServerJob(i *spec.ClusterVirtualImage, to Copier, s Settings) *corev1.Pod {
	yes, no, user, policy := true, false, int64(RunnerUser), corev1.FSGroupChangeOnRootMismatch
	f := FilledClusterImage(i, s.ImageNamespace)
	meta := f.object(ServerPod(i.Name, to.UID))
	meta.Labels[names.LabelComponent], meta.Labels[names.LabelImageServer] = names.ComponentRunner, i.Name
	meta.Annotations[names.AnnotationServesTo] = to.String()
	dir := path.Join(machineconfig.DiskMountDir, serveVolume)
	volume := claimVolume(serveVolume, f.claim)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindPod}, ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName: names.ServiceAccount, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			// After a restart it is the same server at the same address.
			RestartPolicy: corev1.RestartPolicyAlways,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &policy,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{volume},
			Containers: []corev1.Container{{
				Name: "serve", Image: ImporterImage(&s), ImagePullPolicy: s.RunnerPullPolicy,
				Args: []string{
					"serve", "-image=" + path.Join(dir, machineconfig.DiskFile), "-certificates=" + keyDir, "-client=" + to.Key, "-listen=:" + strconv.Itoa(servePort),
				},
				Ports:        []corev1.ContainerPort{{Name: "image", ContainerPort: servePort, Protocol: corev1.ProtocolTCP}},
				VolumeMounts: []corev1.VolumeMount{{Name: serveVolume, MountPath: dir, ReadOnly: true}},
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 2, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(servePort)}},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("256Mi")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	addKey(pod, ServerKeyName(i.Name))
	return pod
}
