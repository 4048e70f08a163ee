package objects_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// Of sources of a volume with a key in common the last wins: whoever may write a
// secret with the labels of a display secret must not write the configuration.
func TestProjectedSourcesNameTheirKeys(t *testing.T) {
	vm := &spec.VirtualMachine{}
	vm.Name = "web"
	key := func(secret, key string) *spec.CloudInitSource {
		return &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: secret, Key: key}}
	}
	vm.Spec.CloudInit = &spec.CloudInit{UserDataFrom: key("a", ""), MetaDataFrom: key("a", "config.yaml"), NetworkConfigFrom: key("b", "display-password")}
	spec.Default(vm)
	pod := objects.Pod(vm, objects.Settings{}, objects.PodInput{DisplaySecret: "foreign"})
	taken := map[string]bool{}
	take := func(volume, path string) {
		if taken[volume+"/"+path] {
			t.Errorf("volume %s has %s from two sources", volume, path)
		}
		taken[volume+"/"+path] = true
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			var items []corev1.KeyToPath
			switch {
			case s.ConfigMap != nil:
				items = s.ConfigMap.Items
			case s.Secret != nil:
				items = s.Secret.Items
			default:
				continue
			}
			if len(items) == 0 {
				t.Errorf("volume %s: a source has all keys: %+v", v.Name, s)
			}
			for _, i := range items {
				take(v.Name, i.Path)
			}
		}
	}
	for _, want := range []string{"config/config.yaml", "config/logging.properties", "config/display-password", "config/password-expiry", "api-token/ca.crt"} {
		if !taken[want] {
			t.Errorf("nothing gives %s", want)
		}
	}
	if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
		t.Error("every container gets a token")
	}
}

// The runner's container has the machine's name, whatever that is.
func TestContainersHaveNamesOfTheirOwn(t *testing.T) {
	for _, name := range []string{"web", objects.TapContainer} {
		vm := &spec.VirtualMachine{}
		vm.Namespace, vm.Name = "lab", name
		vm.Spec.VM.Networks = []spec.Network{{Tap: &spec.TapNetwork{}}}
		spec.Default(vm)
		pod := objects.Pod(vm, objects.Settings{}, objects.PodInput{})
		if init := pod.Spec.InitContainers; len(init) != 1 || init[0].Name == name || pod.Spec.Containers[0].Name != name {
			t.Errorf("%s: %+v", name, init)
		}
	}
}

// A claim that is shared is mounted like a disk's, for reading only where it is so.
func TestPodMountsShares(t *testing.T) {
	vm := &spec.VirtualMachine{}
	vm.Name = "web"
	vm.Spec.VM.Shares = []spec.Share{{Tag: "My_src", ReadOnly: true, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "shared"}}}
	spec.Default(vm)
	pod := objects.Pod(vm, objects.Settings{}, objects.PodInput{})
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "shared"
	})
	if i < 0 || !pod.Spec.Volumes[i].PersistentVolumeClaim.ReadOnly || len(validation.IsDNS1123Label(pod.Spec.Volumes[i].Name)) > 0 {
		t.Fatalf("%+v", pod.Spec.Volumes)
	}
	if !slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == pod.Spec.Volumes[i].Name && m.MountPath == machineconfig.ShareMountDir+"/My_src" && m.ReadOnly
	}) {
		t.Errorf("%+v", pod.Spec.Containers[0].VolumeMounts)
	}
}

// A claim that is shared twice is one volume, which may be written if one share may: the
// kubelet waits for ever for the second volume of a claim.
func TestPodHasAVolumeForASharedClaim(t *testing.T) {
	for _, readOnly := range [][2]bool{{false, true}, {true, false}, {true, true}} {
		vm := &spec.VirtualMachine{}
		vm.Name = "web"
		for i, tag := range []string{"a", "b"} {
			vm.Spec.VM.Shares = append(vm.Spec.VM.Shares, spec.Share{Tag: tag, ReadOnly: readOnly[i], PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "shared"}})
		}
		spec.Default(vm)
		pod := objects.Pod(vm, objects.Settings{}, objects.PodInput{})
		volumes, name := 0, ""
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "shared" {
				volumes, name = volumes+1, v.Name
				if v.PersistentVolumeClaim.ReadOnly != (readOnly[0] && readOnly[1]) {
					t.Errorf("%v: %+v", readOnly, v)
				}
			}
		}
		mounts := map[string]bool{}
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			if m.Name == name {
				mounts[m.MountPath] = m.ReadOnly
			}
		}
		want := map[string]bool{machineconfig.ShareMountDir + "/a": readOnly[0], machineconfig.ShareMountDir + "/b": readOnly[1]}
		if volumes != 1 || !maps.Equal(mounts, want) {
			t.Errorf("%v: %d volumes, mounts %v", readOnly, volumes, mounts)
		}
	}
}

// What is in a pod gains no privileges by a program's set-user-ID bit or capabilities:
// that is for the containers of privileged pods. The runner's has no capability, and
// those that have one end before it starts.
func TestNoContainerGainsPrivileges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		spec.Default(vm)
		s := objects.Settings{TakeOverData: rapid.Bool().Draw(t, "take over"), Privileged: rapid.Bool().Draw(t, "privileged")}
		pod := objects.Pod(vm, s, objects.PodInput{Disks: machineconfig.Disks(vm), TakeOver: rapid.Bool().Draw(t, "former")})
		allowed := s.Privileged && vm.Spec.VM.Accelerator != spec.AcceleratorTCG
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			sc := c.SecurityContext
			gains := sc == nil || sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation || sc.Privileged != nil && *sc.Privileged
			if gains && !allowed || gains && c.Name != pod.Spec.Containers[0].Name {
				t.Fatalf("container %s gains privileges: %+v", c.Name, sc)
			}
			if sc.Capabilities == nil || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(sc.Capabilities.Add) > 1 {
				t.Fatalf("container %s has %+v", c.Name, sc.Capabilities)
			}
		}
		if pod.Spec.HostPID || pod.Spec.HostIPC || len(pod.Spec.Containers) != 1 || len(pod.Spec.Containers[0].SecurityContext.Capabilities.Add) > 0 {
			t.Fatalf("%+v", pod.Spec.Containers)
		}
	})
}
