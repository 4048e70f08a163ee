package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

// The ports of the display are those of the pod and of the load balancer, and
// either protocol asks for the one secret.
func TestDisplayPorts(t *testing.T) {
	port := func(p int32) *int32 { return &p }
	no := false
	for _, tt := range []struct {
		name    string
		display spec.Display
		ports   string
		secret  bool
	}{
		{"SPICE alone", spec.Display{Spice: &spec.Spice{}}, "spice 5900 ", true},
		{"VNC alone", spec.Display{VNC: &spec.VNC{}}, "vnc 5901 ", true},
		{"both", spec.Display{Spice: &spec.Spice{GenerateSecret: &no}, VNC: &spec.VNC{Websocket: port(5700)}}, "spice 5900 vnc 5901 vnc-websocket 5700 ", true},
		{"without a secret", spec.Display{VNC: &spec.VNC{GenerateSecret: &no}}, "vnc 5901 ", false},
		{"not served", spec.Display{}, "", false},
	} {
		cpus := int32(1)
		vm := &spec.VirtualMachine{Spec: spec.VirtualMachineSpec{VM: spec.Machine{MaximumCPUs: &cpus, Display: &tt.display}}}
		vm.Name = "web"
		spec.Default(vm)
		if problems := spec.Validate(vm); problems != nil {
			t.Errorf("%s: %v", tt.name, problems)
		}
		served := ""
		if s := reconcile.Service(vm, reconcile.Settings{LoadBalancer: &reconcile.LoadBalancer{}}); s != nil {
			for _, p := range s.Spec.Ports {
				served += fmt.Sprintf("%s %d ", p.Name, p.Port)
			}
		}
		if served != tt.ports || reconcile.WantsDisplaySecret(vm) != tt.secret {
			t.Errorf("%s: ports %q, secret %v", tt.name, served, reconcile.WantsDisplaySecret(vm))
		}
	}
}
