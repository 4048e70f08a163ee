package takeover

import (
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	vmobjects "github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

type machine struct {
	*check
	vm       *spec.VirtualMachine // with its defaults
	settings vmobjects.Settings
	pod      *corev1.Pod
	present  *corev1.Pod
}

func (m *machine) say(u Urgency, t Topic, field, what, do string) {
	m.check.say(spec.KindVirtualMachine, m.vm.Namespace, m.vm.Name, u, t, field, what, do)
}

// former reports whether the claim with the runner's data is VM-Operator's.
func (m *machine) former() bool {
	for _, name := range []string{spec.RunnerDataClaimName(m.vm.Name), vmobjects.FormerClaim(m.vm.Name, vmobjects.RunnerDataDisk)} {
		pvc, ok := get[corev1.PersistentVolumeClaim](m.objects, kindClaim, m.vm.Namespace, name)
		if !ok || pvc.Annotations[names.AnnotationOrigin] == string(machineconfig.OriginVMOP) {
			continue
		}
		if l := pvc.Labels; l[names.LabelName] == names.AppName && l[names.LabelInstance] == m.vm.Name && l[names.LabelManagedBy] == names.ManagedBy {
			return true
		}
	}
	return false
}

// privileges lists what a pod needs beyond the level restricted.
func privileges(pod *corev1.Pod) []string {
	var out []string
	if pod.Spec.HostNetwork {
		out = append(out, "the node's network")
	}
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		for _, p := range c.Ports {
			if p.HostPort != 0 && !pod.Spec.HostNetwork {
				out = append(out, fmt.Sprintf("port %d of the node", p.HostPort))
			}
		}
		s := c.SecurityContext
		if s == nil {
			continue
		}
		if s.Privileged != nil && *s.Privileged {
			out = append(out, "a privileged container ("+c.Name+")")
		}
		if s.Capabilities != nil && len(s.Capabilities.Add) > 0 {
			out = append(out, fmt.Sprintf("the capabilities %v (container %s)", s.Capabilities.Add, c.Name))
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			out = append(out, v.HostPath.Path+" of the node")
		}
	}
	return out
}
