package objects

import (
	"path"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// program returns a pod that does one thing with the claim, once, unprivileged and without a
// token.
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
			// The account has the pull secrets of the image. Nothing in the pod has a token of
			// it.
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

func addDevice(pod *corev1.Pod, volume string) {
	c := &pod.Spec.Containers[0]
	c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: volume, DevicePath: path.Join(machineconfig.DiskDeviceDir, volume)})
	pod.Spec.SecurityContext.SupplementalGroups = []int64{diskGroup}
}

// sourceVolume holds what is only read, such as the disk to copy, and pullVolume the credentials
// for a registry.
const (
	sourceVolume = "source"
	pullVolume   = "registry"
	pullDir      = "/run/secrets/registry"
)

// importSeconds is how long one attempt to fill a disk may take. A later one resumes the download
// where the server permits.
const importSeconds = 24 * 3600
