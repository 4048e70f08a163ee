package kubevirt

import (
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func (m *machine) placement() {
	m.vm.Spec.NodeSelector = either(m.instance.Get("nodeSelector"), m.sizes.Get("nodeSelector")).Strings()
	var affinity corev1.Affinity
	if m.instance.Get("affinity").Decode(&affinity) {
		m.vm.Spec.Affinity = &spec.Affinity{NodeAffinity: affinity.NodeAffinity, PodAffinity: affinity.PodAffinity, PodAntiAffinity: affinity.PodAntiAffinity}
	}
	m.instance.Get("tolerations").Decode(&m.vm.Spec.Tolerations)
	m.instance.Get("topologySpreadConstraints").Decode(&m.vm.Spec.TopologySpreadConstraints)
	m.vm.Spec.PriorityClassName = m.instance.Get("priorityClassName").String()
}
