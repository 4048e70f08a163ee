package objects

import (
	"strconv"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

const (
	// TapContainer is the name of the container that makes tap interfaces, and
	// ends before the runner starts. In the pod of a machine of that name, whose
	// runner is called so, it is another one.
	TapContainer      = "tap"
	otherTapContainer = "tap-interfaces"
	// tunDevice is what tap interfaces are made with.
	tunDevice = "/dev/net/tun"
	volumeTun = "tun"
)

// addTap gives the pod what tap interfaces on bridges of the node need. They are
// made by a container that alone has CAP_NET_ADMIN, and that has ended when the
// runner and QEMU start: those take the interfaces over by their user's number.
func addTap(vm *spec.VirtualMachine, pod *corev1.Pod) {
	taps := machineconfig.PreparedTaps(vm)
	if len(taps) == 0 {
		return
	}
	pod.Spec.HostNetwork = true
	// Names of the cluster, such as that of a server of images, still resolve.
	pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeTun, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: tunDevice, Type: new(corev1.HostPathCharDev)},
	}})
	c := &pod.Spec.Containers[0]
	mount := corev1.VolumeMount{Name: volumeTun, MountPath: tunDevice}
	variable := corev1.EnvVar{Name: runnerconfig.PreparedTapsEnv, Value: runnerconfig.FormatTaps(taps)}
	c.VolumeMounts = append(c.VolumeMounts, mount)
	c.Env = append(c.Env, variable)
	name := TapContainer
	if c.Name == name {
		name = otherTapContainer
	}
	made := briefContainer(c, name, []string{"-prepare-taps", strconv.Itoa(RunnerUser)}, []corev1.VolumeMount{mount}, "NET_ADMIN")
	made.Env = []corev1.EnvVar{variable}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, made)
}
