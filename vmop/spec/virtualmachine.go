package spec

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func machineKind() Kind {
	return typed(Kind{
		Name: KindVirtualMachine, Plural: ResourceVirtualMachines, noun: "virtual machine",
		NewList:   func() runtime.Object { return &VirtualMachineList{} },
		defaulted: machineDefaults,
	}, functions[*VirtualMachine]{
		setDefaults: Default,
		validate:    func(vm *VirtualMachine) field.ErrorList { return Validate(vm) },
		written:     func(vm *VirtualMachine) { vm.Status = VirtualMachineStatus{} },
		object:      func(o *Object, vm *VirtualMachine) { o.VirtualMachine = vm },
	})
}

// machineDefaults are the fields with a default of the types of a machine, and of
// those that kinds share.
func machineDefaults(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[VirtualMachine]():
		return []string{"status"}
	case reflect.TypeFor[VirtualMachineSpec]():
		return []string{"runnerTemplate", "guestShutdownStops", "pools"}
	case reflect.TypeFor[RunnerTemplate]():
		return []string{"update"}
	case reflect.TypeFor[Permission]():
		return []string{"may"}
	case reflect.TypeFor[Machine]():
		return []string{
			"state", "useTpm", "firmware", "bootMenu", "powerdownTimeout", "accelerator", "cpuModel",
			"maximumRam", "rtcBase", "rtcClock", "networks", "disks", "serial", "display",
		}
	case reflect.TypeFor[CPUTopology]():
		return []string{"sockets", "diesPerSocket", "coresPerDie", "threadsPerCore"}
	case reflect.TypeFor[SerialConsole]():
		return []string{"enabled"}
	case reflect.TypeFor[TapNetwork]():
		return []string{"device", "bridge"}
	case reflect.TypeFor[UserNetwork]():
		return []string{"device"}
	case reflect.TypeFor[HostForward]():
		return []string{"protocol"}
	case reflect.TypeFor[Share]():
		return []string{"protocol"}
	case reflect.TypeFor[ContainerDisk]():
		return []string{"persistent", "pullPolicy"}
	case reflect.TypeFor[VolumeClaimTemplate]():
		return []string{"spec"}
	case reflect.TypeFor[VolumeClaimSpec]():
		return []string{"accessModes", "volumeMode"}
	case reflect.TypeFor[Display]():
		return []string{"outputs"}
	case reflect.TypeFor[DisplayTLS]():
		return []string{"generateSecret"}
	case reflect.TypeFor[VirtualMachineStatus]():
		return []string{"cpus", "ram", "consoleClient", "consoleUser", "displayPasswordSerial", "assignment", "conditions"}
	case reflect.TypeFor[Condition]():
		return []string{"status", "message"}
	}
	return displayDefaults(t)
}
