package spec_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// Each entry breaks one thing of any valid machine; the finding must name the
// field.
func TestOneMistakeIsFoundInAnyMachine(t *testing.T) {
	mistakes := map[string]func(*spec.VirtualMachine) string{
		"no name":     func(vm *spec.VirtualMachine) string { vm.Name = ""; return "metadata.name" },
		"digit first": func(vm *spec.VirtualMachine) string { vm.Name = "1" + vm.Name; return "metadata.name" },
		"dot in name": func(vm *spec.VirtualMachine) string { vm.Name = "a.b"; return "metadata.name" },
		"long name":   func(vm *spec.VirtualMachine) string { vm.Name = strings.Repeat("a", 64); return "metadata.name" },
		"no CPUs": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CPUTopology = nil, nil
			return "spec.vm.maximumCpus"
		},
		"too many CPUs": func(vm *spec.VirtualMachine) string {
			n := int32(vm.Spec.VM.MaxCPUs()) + 1
			vm.Spec.VM.CurrentCPUs = &n
			return "spec.vm.currentCpus"
		},
		"zero CPUs": func(vm *spec.VirtualMachine) string {
			n := int32(0)
			vm.Spec.VM.CurrentCPUs = &n
			return "spec.vm.currentCpus"
		},
		"huge topology": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.MaximumCPUs = nil
			vm.Spec.VM.CPUTopology = &spec.CPUTopology{Sockets: 4096, DiesPerSocket: 4096, CoresPerDie: 4096, ThreadsPerCore: 4096}
			return "spec.vm.cpuTopology"
		},
		"too much RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("1Ei")
			vm.Spec.VM.CurrentRAM = &q
			return "spec.vm.currentRam"
		},
		"half a byte": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("500m")
			vm.Spec.VM.CurrentRAM = &q
			return "spec.vm.currentRam"
		},
		"negative RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("-1Gi")
			vm.Spec.VM.MaximumRAM = &q
			return "spec.vm.maximumRam"
		},
		"endless RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("1e30")
			vm.Spec.VM.MaximumRAM = &q
			return "spec.vm.maximumRam"
		},
		"NUL in args": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.KernelBoot = &spec.KernelBoot{Kernel: "k", Args: "a\x00b"}
			return "spec.vm.kernelBoot.args"
		},
		"no kernel": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.KernelBoot = &spec.KernelBoot{Args: "a"}
			return "spec.vm.kernelBoot.kernel"
		},
		"escaping CD": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "a/../../b"}}) + ".cdrom.image"
		},
		"line in CD": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "a\nb"}}) + ".cdrom.image"
		},
		"foreign URL": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "nbd://x"}}) + ".cdrom.image"
		},
		"no disk kind": func(vm *spec.VirtualMachine) string { return addDisk(vm, spec.Disk{}) },
		"two disk kinds": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{}, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "unique-claim"}})
		},
		"runner's claim": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: vm.Name + "-runner-data"}}) + ".persistentVolumeClaim.claimName"
		},
		"reserved name": func(vm *spec.VirtualMachine) string {
			d := spec.Disk{VolumeClaimTemplate: &spec.VolumeClaimTemplate{}}
			d.VolumeClaimTemplate.Metadata.Name = vm.Name + "-runner-data"
			d.VolumeClaimTemplate.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
			return addDisk(vm, d) + ".volumeClaimTemplate.metadata.name"
		},
		"multicast MAC": func(vm *spec.VirtualMachine) string {
			return addNetwork(vm, spec.Network{User: &spec.UserNetwork{MAC: "53:54:00:00:00:01"}}) + ".user.mac"
		},
		"no network kind": func(vm *spec.VirtualMachine) string { return addNetwork(vm, spec.Network{}) },
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				vm := spectest.VirtualMachine().Draw(t, "vm")
				path := mistake(vm)
				errs := spec.Validate(vm)
				for _, e := range errs {
					if e.Field == path {
						return
					}
				}
				t.Fatalf("nothing was found at %s: %v", path, errs.ToAggregate())
			})
		})
	}
}

func addDisk(vm *spec.VirtualMachine, d spec.Disk) string {
	vm.Spec.VM.Disks = append([]spec.Disk{d}, vm.Spec.VM.Disks...)
	return "spec.vm.disks[0]"
}

func addNetwork(vm *spec.VirtualMachine, n spec.Network) string {
	vm.Spec.VM.Networks = append([]spec.Network{n}, vm.Spec.VM.Networks...)
	return "spec.vm.networks[0]"
}

func TestCDImages(t *testing.T) {
	for image, valid := range map[string]bool{
		"": true, "cd.iso": true, "dir/cd.iso": true, "./cd.iso": true, "a..b": true, "..a/b": true,
		"/srv/cd.iso": true, "/srv/../cd.iso": true, "with space,comma=x\"'.iso": true, "a:b.iso": true,
		"https://example.org/cd.iso": true, "HTTP://example.org:8080/x?y=1,2": true, "file:///srv/cd.iso": true, "file:/srv/cd.iso": true,
		"..": false, "../x": false, "a/../b": false, "a/..": false, ".": false, "a/": false, "/": false,
		"http:cd.iso": false, "file:cd.iso": false, "https://": false, "ssh://h/x": false, "a\x00b": false, "http://h/a b": false, "\xff": false,
	} {
		vm := &spec.VirtualMachine{}
		vm.Name = "vm"
		n := int32(1)
		vm.Spec.VM.MaximumCPUs = &n
		vm.Spec.VM.Disks = []spec.Disk{{Cdrom: &spec.Cdrom{Image: image}}}
		if errs := spec.Validate(vm); (len(errs) == 0) != valid {
			t.Errorf("%q: valid %v, findings %v", image, valid, errs)
		}
	}
}

func TestDiskNames(t *testing.T) {
	template := func(name string) spec.Disk {
		d := spec.Disk{VolumeClaimTemplate: &spec.VolumeClaimTemplate{}}
		d.VolumeClaimTemplate.Metadata.Name = name
		return d
	}
	cd := spec.Disk{Cdrom: &spec.Cdrom{}}
	// CDs do not count, named templates do.
	disks := []spec.Disk{cd, cd, template("system"), template("")}
	for i, want := range []string{"", "", "system-disk", "disk-1"} {
		if got := spec.DiskName(disks, i); got != want {
			t.Errorf("disk %d: got %q, want %q", i, got, want)
		}
	}
}
