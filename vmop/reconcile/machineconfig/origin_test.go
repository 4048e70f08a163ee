package machineconfig_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// A guest that is taken over has the addresses that the real QEMU gave it, which
// was told none.
func TestFormerNetworksAreQEMUsOwn(t *testing.T) {
	qemu := testbin.Find(t, testbin.QEMU)
	user := func(mac string) spec.Network { return spec.Network{User: &spec.UserNetwork{MAC: mac}} }
	for name, networks := range map[string][]spec.Network{
		"none":              nil,
		"two":               {user(""), user("")},
		"the second given":  {user(""), user("52:54:00:12:34:57"), user("")},
		"the first given":   {user("52:54:00:12:34:56"), user("")},
		"upper case":        {user("52:54:00:12:34:56"), user("52:54:00:12:34:57"), user("")},
		"another one given": {user("02:00:00:00:00:01"), user(""), user("")},
	} {
		args := []string{"-S", "-no-user-config", "-machine", "pc-q35-7.2", "-accel", "tcg", "-display", "none", "-monitor", "stdio"}
		for _, n := range networks {
			device := "virtio-net,netdev=" + "n" + string(rune('0'+len(args)%10))
			args = append(args, "-netdev", "user,id="+strings.TrimPrefix(device, "virtio-net,netdev="))
			if n.User.MAC != "" {
				device += ",mac=" + n.User.MAC
			}
			args = append(args, "-device", device)
		}
		cmd := exec.CommandContext(t.Context(), qemu, args...)
		cmd.Stdin = strings.NewReader("info network\nquit\n")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		var want []string
		for _, m := range regexp.MustCompile(`macaddr=([0-9a-f:]{17})`).FindAllStringSubmatch(string(out), -1) {
			want = append(want, m[1])
		}
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		vm.Spec.VM.Networks = networks
		cpus := int32(1)
		vm.Spec.VM.MaximumCPUs = &cpus
		config, err := machineconfig.ForCluster(vm, machineconfig.Options{Origin: machineconfig.OriginVMOperator})
		if err != nil {
			t.Fatal(err)
		}
		if config.Runner.VM.BootOrder != runnerconfig.BootOrderFirmware || config.Runner.VM.CPUOrder != runnerconfig.CPUOrderHighest {
			t.Errorf("%s: boot order %q, CPU order %q", name, config.Runner.VM.BootOrder, config.Runner.VM.CPUOrder)
		}
		var got []string
		for _, n := range config.Runner.VM.Network {
			got = append(got, strings.ToLower(n.MAC))
		}
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if len(networks) == 0 && (len(config.Runner.VM.Network) != 1 || config.Runner.VM.Network[0].Device != "e1000e") {
			t.Errorf("%s: %+v", name, config.Runner.VM.Network)
		}
		// A new machine has what the manifest says.
		if config, err = machineconfig.ForCluster(vm, machineconfig.Options{}); err != nil || len(config.Runner.VM.Network) != len(networks) || config.Runner.VM.BootOrder+config.Runner.VM.CPUOrder != "" {
			t.Errorf("%s: %+v, %v", name, config.Runner.VM.Network, err)
		}
		for i, n := range config.Runner.VM.Network {
			if n.MAC != networks[i].User.MAC {
				t.Errorf("%s: a new machine has %s", name, n.MAC)
			}
		}
	}
}
