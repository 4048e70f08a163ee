package objects

import (
	"maps"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Service returns the load balancer of the machine's display; nil if there is none: the
// operator's settings have none, the manifest turns it off with an empty object, or the display
// is not served to other hosts. displaySecret is as in [PodInput], see [UsedDisplaySecret]: a
// display without a password has no port. A running machine gets its first password when it is
// started again, and its port answers from then on.
//
// The manifest's labels and annotations overlay the operator's, where null removes a key. Those
// that the operator depends on always win.
func Service(vm *spec.VirtualMachine, s Settings, displaySecret string) *corev1.Service {
	lb := vm.Spec.LoadBalancerService
	var served []spec.DisplayPort
	// A display without a password is not served outside of the cluster, even if it is inside.
	if displaySecret != "" || s.Allowed.Everything {
		served = displayPorts(vm, &s, displaySecret != "")
	}
	off := lb != nil && len(lb.Labels) == 0 && len(lb.Annotations) == 0
	if s.LoadBalancer == nil || off || len(served) == 0 {
		return nil
	}
	if lb == nil {
		lb = &spec.LoadBalancerService{}
	}
	var ports []corev1.ServicePort
	for _, p := range served {
		ports = append(ports, corev1.ServicePort{
			Name: p.Name, Protocol: corev1.ProtocolTCP,
			Port: p.Port, TargetPort: intstr.FromString(p.Name),
		})
	}
	meta := objectMeta(vm, &s)
	meta.Labels = overlay(s.LoadBalancer.Labels, lb.Labels, meta.Labels)
	meta.Annotations = overlay(s.LoadBalancer.Annotations, lb.Annotations, meta.Annotations)
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{names.LabelName: names.AppName, names.LabelInstance: vm.Name},
			Ports:    ports,
		},
	}
}

// overlay overlays base with over, where nil removes a key, and both with top.
func overlay(base map[string]string, over map[string]*string, top map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, base)
	for key, value := range over {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = *value
		}
	}
	maps.Copy(out, top)
	return out
}
