package spec_test

import (
	"fmt"

	"github.com/vmop/sdk/vmop/spec"
)

func ExampleLoad() {
	const manifest = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata:
  name: web
spec:
  vm:
    maximumCpus: 2
    maximumRam: 4Gi
    disks:
    - cdrom:
        image: debian.iso
`
	objects, err := spec.Load("web.yaml", []byte(manifest), spec.Options{Default: true, Validate: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm := objects[0].VirtualMachine
	fmt.Println(vm.Name, vm.Spec.VM.State, spec.Bytes(*vm.Spec.VM.MaximumRAM), *vm.Spec.VM.Display.Spice.Port)
	fmt.Println(objects[0].Position("spec.vm.disks[0].cdrom.image"))
	// Output:
	// web Stopped 4294967296 5900
	// web.yaml:12
}

func ExampleLoad_problems() {
	const manifest = `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata:
  name: web
spec:
  vm:
    maximumCpus: 2
    curentCpus: 4
    display:
      spice:
        streamingVideo: off
    disks:
    - cdrom:
        image: ../../etc/shadow
`
	_, err := spec.Load("web.yaml", []byte(manifest), spec.Options{Validate: true})
	fmt.Println(err)
	// Output:
	// web.yaml:9: VirtualMachine web: spec.vm.curentCpus: there is no such field; did you mean "currentCpus"?
	// web.yaml:12: VirtualMachine web: spec.vm.display.spice.streamingVideo: is a boolean (off), expected a string; put it in quotes: "off"
	// web.yaml:15: VirtualMachine web: spec.vm.disks[0].cdrom.image: Invalid value: "../../etc/shadow": a relative path must not have ".." in it, because it is looked up in the image repository; give an absolute path
}

func ExampleParseRetention() {
	r, err := spec.ParseRetention("P1MT12h")
	fmt.Println(r.Months, r.Time, err)
	// Output: 1 12h0m0s <nil>
}
