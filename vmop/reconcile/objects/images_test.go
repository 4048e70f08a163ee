package objects

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

const machineWithImages = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: m, namespace: lab}
spec:
  vm:
    maximumCpus: 1
    disks:
    - image: {name: a, source: "http://169.254.169.254/latest", size: 2Gi, storageClassName: fast}
    - containerDisk: {name: b, image: "localhost:5000/disks/b"}
    - containerDisk: {name: c, image: quay.io/disks/c, persistent: true, size: 1Gi}
    - image: {name: d, source: "oci://[::1]:5000/disks/d", size: 1Gi}
    - containerDisk: {name: e, image: quay.io/disks/e, size: 3Gi}
`

func imageMachine(t *testing.T, from string) *spec.VirtualMachine {
	t.Helper()
	objects, err := spec.Load("m", []byte(from), spec.Options{Default: true})
	if err != nil {
		t.Fatal(err)
	}
	return objects[0].VirtualMachine
}

// A disk that is kept has a claim with a file system, and one that is new at each
// start a volume that goes with the pod.
func TestVolumesOfImages(t *testing.T) {
	vm := imageMachine(t, machineWithImages)
	disks := machineconfig.Disks(vm)
	claim := DiskClaim(vm, disks[0])
	if s := claim.Spec; claim.Name != "m-a-disk" || *s.StorageClassName != "fast" || *s.VolumeMode != "Filesystem" || s.Resources.Requests.Storage().String() != "2Gi" {
		t.Errorf("%s: %+v", claim.Name, s)
	}
	pod := Pod(vm, Settings{}, PodInput{Disks: disks})
	for _, v := range pod.Spec.Volumes {
		switch v.Name {
		case "b-disk":
			// Nobody fills the node's disk.
			if v.EmptyDir == nil || v.EmptyDir.Medium != "" || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Value() != 40<<30+256<<20 {
				t.Errorf("%+v", v)
			}
		case "e-disk":
			if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Value() != 6<<30+256<<20 {
				t.Errorf("%+v", v)
			}
		case "a-disk", "c-disk":
			if v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "m-"+v.Name {
				t.Errorf("%+v", v)
			}
		}
	}
	mounts := 0
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.MountPath == machineconfig.DiskMountDir+"/"+m.Name && !m.ReadOnly {
			mounts++
		}
	}
	if mounts != 5 {
		t.Errorf("%d disks are mounted: %+v", mounts, pod.Spec.Containers[0].VolumeMounts)
	}
}

// Addresses of the pod's own are the administrator's to allow.
func TestServersOfDisks(t *testing.T) {
	vm := imageMachine(t, machineWithImages)
	fields := func(s Settings) []string {
		var out []string
		for _, r := range Refusals(vm, s) {
			if r.Setting == "allowedImageHosts" {
				out = append(out, r.Field)
			}
		}
		return out
	}
	all := []string{"spec.vm.disks[0].image.source", "spec.vm.disks[1].containerDisk.image", "spec.vm.disks[3].image.source"}
	if got := fields(Settings{}); !slices.Equal(got, all) {
		t.Errorf("refused: %q, want %q", got, all)
	}
	if got := fields(Settings{Allowed: Allowed{ImageHosts: []string{"localhost", "169.254.*"}}}); !slices.Equal(got, all[2:]) {
		t.Errorf("refused: %q, want %q", got, all[2:])
	}
}
