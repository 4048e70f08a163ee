package vmop_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// What a guest is provisioned by is in no argument of QEMU, in no configuration and in
// no object but, if it is in the manifest, a Secret of its own; of other Secrets there is
// the name alone. A pod gets each key under a name of its own.
func TestProvisioningIsNotTold(t *testing.T) {
	const marker = "correct-horse-battery"
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "machine")
		vm.Spec.RunnerTemplate = nil
		vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentCPUs, vm.Spec.VM.CPUTopology = nil, nil, nil // of which QEMU has a bound
		if p := vm.Spec.Provisioning; p == nil {
			t.Skip()
		} else if p.Type == spec.ProvisioningUserData {
			p.UserData += marker
		}
		out, err := vmop.Render(vm, vmop.RenderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		command, err := json.Marshal(out.Command)
		if err != nil {
			t.Fatal(err)
		}
		config, err := runnerconfig.Marshal(out.Config)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(command), marker) || strings.Contains(string(config), marker) {
			t.Fatalf("the command or the configuration has it: %s\n%s", command, config)
		}
		given := ""
		for _, o := range out.Objects {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if s, is := o.(*corev1.Secret); is && s.Type == names.SecretTypeCloudInit {
				given = string(s.Data[spec.UserDataKey])
			} else if strings.Contains(string(text), marker) {
				t.Fatalf("%T has it: %s", o, text)
			}
			pod, is := o.(*corev1.Pod)
			if !is {
				continue
			}
			paths := map[string]bool{}
			for _, v := range pod.Spec.Volumes {
				if v.Projected == nil || v.Name != "config" {
					continue
				}
				for _, s := range v.Projected.Sources {
					if s.Secret == nil {
						continue
					}
					for _, item := range s.Secret.Items {
						if paths[item.Path] {
							t.Fatalf("two keys have the path %s", item.Path)
						}
						paths[item.Path] = true
					}
				}
			}
			if !paths["cloud-init/user-data"] && !paths["sysprep/unattend.xml"] {
				t.Fatalf("the pod gets %v", paths)
			}
		}
		if want := vm.Spec.InlineUserData(); given != want || out.CloudInit != nil && want != "" && string(out.CloudInit.UserData) != want {
			t.Fatalf("the Secret has %q, cloud-init %q; want %q", given, out.CloudInit.UserData, want)
		}
	})
}
