package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// briefResources returns the resources of a short-lived init container: of each kind that a quota
// may require, and no more than the runner has.
func briefResources(of corev1.ResourceRequirements) corev1.ResourceRequirements {
	enough := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	some := func(of corev1.ResourceList) (out corev1.ResourceList) {
		for name, amount := range enough {
			given, ok := of[name]
			if !ok {
				continue
			}
			if given.Cmp(amount) < 0 {
				amount = given
			}
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[name] = amount
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: some(of.Requests), Limits: some(of.Limits)}
}

// briefContainer returns an init container of the runner's image that is root with one capability
// and nothing else.
func briefContainer(runner *corev1.Container, name string, args []string, mounts []corev1.VolumeMount, capability corev1.Capability) corev1.Container {
	yes, no, root := true, false, int64(0)
	return corev1.Container{
		Name: name, Image: runner.Image, ImagePullPolicy: runner.ImagePullPolicy,
		Args: args, VolumeMounts: mounts,
		Resources: briefResources(runner.Resources),
		// Only root's programs get the capabilities of their container.
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: &root, RunAsGroup: &root, RunAsNonRoot: &no,
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{capability}},
		},
	}
}
