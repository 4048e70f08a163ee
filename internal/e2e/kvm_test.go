//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// A privileged pod has KVM's device for its own user, whoever the node lets at its
// own. Whether a guest runs under it is for the node's processor to say.
func TestKVMDeviceOfPrivilegedPods(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	kubectl(t, "label", "namespace", namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	before, err := os.Stat("/dev/kvm") // the node has this machine's devices
	if err != nil {
		before = nil
	}
	applyWith(t, machine(t, "machine.yaml", nil), vmop.RenderOptions{Settings: vmop.Settings{Privileged: true}}, nil)
	awaitLog(t, tinyguest.Ready)
	out := kubectl(t, "exec", "-n", namespace, "tiny", "--", "stat", "-c", "%F %t:%T %g %a", "/dev/kvm")
	if want := fmt.Sprintf("character special file a:e8 %d 660", objects.RunnerUser); strings.TrimSpace(out) != want {
		t.Errorf("the device is %s, want %s", out, want)
	}
	log := kubectl(t, "logs", "-n", namespace, "tiny")
	for line := range strings.Lines(log) {
		if strings.Contains(line, "KVM") {
			t.Log(line)
		}
	}
	if strings.Contains(log, "/dev/kvm: permission denied") || strings.Contains(log, "/dev/kvm: operation not permitted") {
		t.Errorf("the runner may not open it:\n%s", log)
	}
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "json")), &pod); err != nil {
		t.Fatal(err)
	}
	if s := pod.Spec.SecurityContext; *s.RunAsUser != objects.RunnerUser || !*s.RunAsNonRoot {
		t.Errorf("the runner is %+v", s)
	}
	if after, err := os.Stat("/dev/kvm"); before != nil && (err != nil || after.Mode() != before.Mode()) {
		t.Errorf("the node's device was %v and is %v, %v", before.Mode(), after, err)
	}
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
}

// Without a setting, a machine is emulated, and says so where users look.
func emulatedAndToldSo(t *testing.T) {
	t.Helper()
	eventually(t, "the machine says that it is emulated", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "vm", "-n", namespace, "tiny", "-o", `jsonpath={.status.conditions[?(@.type=="Accelerated")]}`)
		if err == nil && (!strings.Contains(out, `"NoKVMDevice"`) || !strings.Contains(out, "VMOP_KVM_RESOURCE")) {
			err = errors.New(out)
		}
		return err
	})
	wide := kubectl(t, "get", "vm", "-n", namespace, "-o", "wide")
	if !strings.Contains(wide, "ACCELERATOR") || !strings.Contains(wide, "tcg") {
		t.Errorf("kubectl get vm -o wide:\n%s", wide)
	}
}
