package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The load balancer has a port for VNC as long as there is a password, whoever
// has made it, and is gone with the last port.
func TestServiceFollowsTheDisplaySecret(t *testing.T) {
	no := false
	w := running(t, func(vm *spec.VirtualMachine) {
		vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{GenerateSecret: &no}}
	})
	w.settings.LoadBalancer = &objects.LoadBalancer{}
	service := func(change func(*machine.Snapshot)) *corev1.Service {
		t.Helper()
		for _, a := range w.decided(change).Actions {
			if apply, is := a.(reconcile.Apply); is {
				if s, is := apply.Object.(*corev1.Service); is {
					return s
				}
			}
		}
		return nil
	}
	secret := func(s *machine.Snapshot) {
		s.DisplaySecrets = []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}}
	}
	if s := service(nil); s != nil {
		t.Errorf("without a password there is a load balancer with %v", s.Spec.Ports)
	}
	with := service(secret)
	if with == nil || len(with.Spec.Ports) != 1 || with.Spec.Ports[0].Name != names.VNCPortName {
		t.Fatalf("with a password: %+v", with)
	}
	with.UID = "load-balancer"
	if s := service(func(s *machine.Snapshot) { secret(s); s.Service = with }); s != nil {
		t.Errorf("it is applied again: %+v", s)
	}
	p := w.decided(func(s *machine.Snapshot) { s.Service = with })
	if len(p.Actions) != 1 || p.Actions[0] != (reconcile.DeleteService{Name: "web", UID: "load-balancer"}) {
		t.Errorf("the password is gone: %v", targets(p))
	}
}
