package reconcile

import (
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a Kubernetes object. All of them have apiVersion and kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Objects lists what a cluster gets for the machine, in the order in which it
// must exist: the display secret, the ConfigMap, the volume claims, the pod
// (as it is while the machine should run) and the load balancer's service.
//
// They are those that [Decide] makes for a machine about which a cluster knows
// nothing yet, with what they note down for later decisions. Only the API server
// and the operator can add the rest: the password of the secret, and the
// versions of ConfigMap and secret on the pod. Owner references need a machine
// with a UID, and [AnnotationApplied], [AnnotationGeneration] and
// [AnnotationStarted] are the cluster's if UID and generation are.
func Objects(vm *spec.VirtualMachine, s Settings) ([]Object, error) {
	snapshot := Snapshot{VM: vm, Settings: s}
	d := &decision{s: &snapshot, vm: defaulted(vm), stored: &spec.VirtualMachineStatus{}}
	d.findClaims()
	d.makeSecret()
	if err := d.makeConfigMap(); err != nil {
		return nil, err
	}
	d.makeClaims()
	var out []Object
	for _, a := range d.plan.Actions {
		c, ok := a.(Create)
		if !ok {
			continue
		}
		switch o := c.Object.(type) {
		case *corev1.Secret:
			d.secret = o
		case *corev1.ConfigMap:
			snapshot.ConfigMap = o
		}
		out = append(out, c.Object)
	}
	pod := d.newPod()
	// The API server gives the versions.
	delete(pod.Annotations, AnnotationConfigVersion)
	delete(pod.Annotations, AnnotationDisplayVersion)
	out = append(out, pod)
	d.makeService()
	if last, ok := d.plan.Actions[len(d.plan.Actions)-1].(Apply); ok {
		out = append(out, last.Object)
	}
	return out, nil
}
