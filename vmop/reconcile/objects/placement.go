package objects

import (
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// podAffinity copies a: a pod has the labels of its machine, so terms about machines are terms about
// their pods.
func podAffinity(a *spec.Affinity) *corev1.Affinity {
	if a == nil {
		return nil
	}
	a = a.DeepCopy()
	out := &corev1.Affinity{NodeAffinity: a.NodeAffinity, PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
	if m := a.VirtualMachineAndPodAffinity; m != nil {
		if out.PodAffinity == nil {
			out.PodAffinity = &corev1.PodAffinity{}
		}
		p := out.PodAffinity
		p.RequiredDuringSchedulingIgnoredDuringExecution = append(p.RequiredDuringSchedulingIgnoredDuringExecution, m.RequiredDuringSchedulingIgnoredDuringExecution...)
		p.PreferredDuringSchedulingIgnoredDuringExecution = append(p.PreferredDuringSchedulingIgnoredDuringExecution, weighted(m)...)
	}
	if m := a.VirtualMachineAndPodAntiAffinity; m != nil {
		if out.PodAntiAffinity == nil {
			out.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		p := out.PodAntiAffinity
		p.RequiredDuringSchedulingIgnoredDuringExecution = append(p.RequiredDuringSchedulingIgnoredDuringExecution, m.RequiredDuringSchedulingIgnoredDuringExecution...)
		p.PreferredDuringSchedulingIgnoredDuringExecution = append(p.PreferredDuringSchedulingIgnoredDuringExecution, weighted(m)...)
	}
	return out
}

func weighted(m *spec.VirtualMachineAndPodAffinity) []corev1.WeightedPodAffinityTerm {
	var out []corev1.WeightedPodAffinityTerm
	for _, t := range m.PreferredDuringSchedulingIgnoredDuringExecution {
		out = append(out, corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: t.Term})
	}
	return out
}
