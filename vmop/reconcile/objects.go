package reconcile

import (
	"github.com/vmop/sdk/vmop/spec"
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
// It shows a machine about which a cluster knows nothing yet: what exists
// already changes the result, and [RunnerConfig], [ConfigMap], [DisplaySecret],
// [RunnerDataClaim], [DiskClaim], [Pod] and [Service] take it. The password
// of the secret is left out: it is for the operator to generate. Owner references need a machine with
// a UID.
func Objects(vm *spec.VirtualMachine, s Settings) ([]Object, error) {
	vm = defaulted(vm)
	disks := Disks(vm)
	var resets int64
	config, err := clusterConfig(vm, disks, RunnerConfigOptions{ResetCounter: &resets})
	if err != nil {
		return nil, err
	}
	var out []Object
	in := PodInput{Disks: disks, DisplaySecret: UsedDisplaySecret(vm, nil)}
	if in.DisplaySecret != "" {
		out = append(out, DisplaySecret(vm, ""))
	}
	configMap, err := ConfigMap(vm, s, config)
	if err != nil {
		return nil, err
	}
	out = append(out, configMap, RunnerDataClaim(vm, s))
	for _, d := range disks {
		if d.Entry.VolumeClaimTemplate != nil {
			out = append(out, DiskClaim(vm, d))
		}
	}
	out = append(out, Pod(vm, s, in))
	if service := Service(vm, s, in.DisplaySecret); service != nil {
		out = append(out, service)
	}
	return out, nil
}
