package objects

import (
	"path"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	corev1 "k8s.io/api/core/v1"
)

const (
	// TakeOverContainer is the name of the init container that gives the files of VM-Operator's
	// runner to the user of this one. For a machine of that name it is otherTakeOverContainer.
	TakeOverContainer      = "take-over"
	otherTakeOverContainer = "take-over-data"
)

// addTakeOver adds an init container that lets the runner write what VM-Operator's runner wrote
// as root, on volumes whose owner Kubernetes does not change. It has CAP_CHOWN and sees nothing
// but these volumes. What it may change is in [github.com/vmop/sdk/vmop/runner.TakeOverData].
func addTakeOver(pod *corev1.Pod) {
	c := &pod.Spec.Containers[0]
	args := []string{"-take-over-data", strconv.Itoa(RunnerUser)}
	var mounts []corev1.VolumeMount
	for _, m := range c.VolumeMounts {
		switch {
		case m.ReadOnly: // shared with other pods
		case m.MountPath == machineconfig.DataDir:
			mounts = append(mounts, m)
		case strings.HasPrefix(m.MountPath, machineconfig.DiskMountDir+"/"):
			mounts = append(mounts, m)
			args = append(args, path.Join(m.MountPath, machineconfig.DiskFile))
		}
	}
	name := TakeOverContainer
	if c.Name == name {
		name = otherTakeOverContainer
	}
	pod.Annotations[names.AnnotationDataOwner] = strconv.Itoa(RunnerUser)
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, briefContainer(c, name, args, mounts, "CHOWN"))
}
