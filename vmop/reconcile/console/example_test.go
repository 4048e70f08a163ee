package console_test

import (
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

func Example() {
	vm := machine(running, anyLogin) // as the API server has it
	user := pool.User{Name: "ann", Roles: []string{"student"}}
	vm.Spec.Permissions = []spec.Permission{{Role: "student", May: []spec.Action{spec.ActionAccessConsole}}}
	if a := console.MayOpen(vm, pool.MachineActions(vm.Spec.Permissions, user), user.Name); !a.Allowed {
		log.Fatal(a.Message)
	}
	plan, err := console.Open(console.Request{
		VM: vm, User: user.Name, Now: time.Now(), Candidate: "Zm9yIHJlYWw6IHJhbmRvbQ==",
		Secret: &corev1.Secret{Data: map[string][]byte{"display-password": []byte("secret"), "password-expiry": []byte("never")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Here plan.User and plan.NewPassword are written, and plan.Serial awaited.
	file, err := console.ViewerFile{
		Protocol: console.SPICE,
		Host:     console.Host(vm.Spec.VM.Display.Spice.Server, []string{"10.244.0.7"}, console.IPv4),
		Port:     int(*vm.Spec.VM.Display.Spice.Port),
		Password: plan.Password, DeleteThisFile: true,
	}.Marshal()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(file))
	// Output:
	// [virt-viewer]
	// type=spice
	// host=10.244.0.7
	// port=5900
	// password=secret
	// delete-this-file=1
}
