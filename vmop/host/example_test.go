package host_test

import (
	"fmt"
	"log"
	"os"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

// A machine is made in Go, kept, listed, and deleted with its disks. That it is started
// and waited for as well shows examples/go-host.
func Example() {
	dir, err := os.MkdirTemp("", "machines")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(host.Options{DataDir: dir})
	if err != nil {
		log.Fatal(err)
	}
	vm := spec.NewVirtualMachine("", "web")
	vm.Spec.VM.MaximumCPUs = new(int32(2))
	vm.Spec.VM.Networks = []spec.Network{{User: &spec.UserNetwork{HostForwards: []spec.HostForward{{HostPort: 2222, GuestPort: 22}}}}}
	if _, err := h.Create(&spec.Object{VirtualMachine: vm}, host.Given{}); err != nil {
		log.Fatal(err)
	}
	machines, err := h.List(host.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range machines {
		o, err := m.Object()
		if err != nil {
			log.Fatal(err)
		}
		address, port, _ := host.SSHForward(o.VirtualMachine)
		fmt.Printf("%s: %s; its SSH server will be at %s:%d\n", m.FullName(), m.Status, address, port)
		if _, err := h.DeleteStopped(m, host.DeleteOptions{Disks: true}); err != nil {
			log.Fatal(err)
		}
	}
	_, err = h.Find("web", "")
	fmt.Println(err)
	// Output:
	// default/web: Stopped; its SSH server will be at 127.0.0.1:2222
	// web: no such machine
}

func ExampleParseForward() {
	f, err := host.ParseForward("127.0.0.1:8080:80")
	fmt.Println(f.HostAddress, f.HostPort, f.GuestPort, err)
	_, err = host.ParseForward("eighty")
	fmt.Println(err)
	// Output:
	// 127.0.0.1 8080 80 <nil>
	// "eighty": want [ADDRESS:]PORT:GUESTPORT or the same with /udp, as in 8080:80
}

func ExampleNameOfImage() {
	fmt.Println(host.NameOfImage("https://example.org/Debian-13-generic.qcow2?mirror=1"))
	fmt.Println(host.NameOfImage("oci://registry.example.org/disks/tools:3"))
	// Output:
	// debian-13-generic
	// tools-3
}
