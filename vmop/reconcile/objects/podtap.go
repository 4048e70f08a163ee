package objects

import (
	"strconv"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

const (
	// TapContainer is the name of the init container that creates tap interfaces. For a machine
	// of that name, whose runner has it, it is otherTapContainer.
	TapContainer      = "tap"
	otherTapContainer = "tap-interfaces"
	tunDevice         = "/dev/net/tun"
	volumeTun         = "tun"
)

// addTap adds what tap interfaces on bridges of the node need. An init container creates them,
// and alone has CAP_NET_ADMIN; runner and QEMU access them by their user ID.
func addTap(vm *spec.VirtualMachine, pod *corev1.Pod) {
	taps := machineconfig.PreparedTaps(vm)
	if len(taps) == 0 {
		return
	}
	pod.Spec.HostNetwork = true
	// Names of the cluster, such as that of an image server, still resolve.
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
