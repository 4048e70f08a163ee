// Command go-render prints the QEMU command line of a manifest's machines, and
// what a second version of the manifest would change.
//
//	go run ./examples/go-render examples/sample/vm.yaml [changed.yaml]
package main

import (
	"fmt"
	"os"

	"github.com/vmop/sdk/vmop"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) < 1 || len(files) > 2 {
		return fmt.Errorf("usage: go-render MANIFEST [CHANGED]")
	}
	var versions [][]*vmop.VirtualMachine
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		vms, err := vmop.Load(name, data)
		if err != nil {
			return err
		}
		versions = append(versions, vms)
	}
	for _, vm := range versions[0] {
		r, err := vmop.Render(vm, vmop.RenderOptions{})
		if err != nil {
			return err
		}
		fmt.Println(r.Command.Shell())
	}
	if len(versions) == 1 {
		return nil
	}
	for i, vm := range versions[0] {
		if i < len(versions[1]) {
			for _, c := range vmop.Changes(vm, versions[1][i]) {
				fmt.Println(c)
			}
		}
	}
	return nil
}
