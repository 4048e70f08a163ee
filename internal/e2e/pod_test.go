//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
)

// applyObjects applies what a machine comes to, all or what is chosen.
func applyObjects(t *testing.T, vm *vmop.VirtualMachine, choose func(reconcile.Object) bool) {
	t.Helper()
	rendered, err := vmop.Render(vm, vmop.RenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []reconcile.Object
	for _, o := range rendered.Objects {
		if choose == nil || choose(o) {
			items = append(items, o)
		}
	}
	list["items"] = items
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(data))
}

func isConfigMap(o reconcile.Object) bool { _, is := o.(*corev1.ConfigMap); return is }
func isPod(o reconcile.Object) bool       { _, is := o.(*corev1.Pod); return is }

// The objects of a machine, as they are rendered, are a machine on a real node:
// without privileges it boots from its volume, follows its configuration, shuts
// down when its pod is deleted, and finds its disk again.
func TestObjectsRunAMachine(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	vm := machine(t, nil)
	applyObjects(t, vm, nil)
	awaitLog(t, tinyguest.Ready)

	c := console(t, "tiny")
	if got := say(t, c, "disks"); !strings.Contains(got, "67108864 bytes") || !strings.Contains(got, "system-disk") {
		t.Errorf("the guest's disks: %s", got)
	}
	if got := say(t, c, "efi"); !strings.Contains(got, "efi") {
		t.Errorf("the guest's firmware: %s", got)
	}
	say(t, c, fmt.Sprintf("write vda %d still here", guestOffset))

	changed := machine(t, func(vm *vmop.VirtualMachine) { two := int32(2); vm.Spec.VM.CurrentCPUs = &two })
	applyObjects(t, changed, isConfigMap)
	kubectl(t, "annotate", "pod", "-n", namespace, "tiny", reconcile.AnnotationConfigVersion+"=2")
	if _, err := c.Expect(withPatience(t), "cpu 1 online"); err != nil {
		t.Error(err)
	}

	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	applyObjects(t, changed, isPod)
	awaitLog(t, tinyguest.Ready)
	c = console(t, "tiny")
	if got := say(t, c, fmt.Sprintf("read vda %d 10", guestOffset)); !strings.Contains(got, "still here") {
		t.Errorf("the disk after a restart: %s", got)
	}
	if got := say(t, c, "cpus"); !strings.Contains(got, "online 0-1") {
		t.Errorf("the guest's CPUs: %s", got)
	}
	if err := c.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod succeeds", func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.message}")
		if err == nil && (!strings.HasPrefix(out, "Succeeded") || !strings.Contains(out, "guest-shutdown")) {
			err = errors.New(out)
		}
		return err
	})
}

// awaitLog waits until the pod's log has a text, and fails when the pod has ended
// without it.
func awaitLog(t *testing.T, text string) {
	t.Helper()
	ended := false
	eventually(t, "the log of the machine's pod", func() error {
		out, err := theNode.Kubectl(t.Context(), "logs", "-n", namespace, "tiny")
		if err != nil || strings.Contains(out, text) {
			return err
		}
		if ended {
			t.Fatalf("the pod ended; its log:\n%s", out)
		}
		phase, err := theNode.Kubectl(t.Context(), "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase}")
		ended = err == nil && (phase == "Failed" || phase == "Succeeded")
		return fmt.Errorf("%q is not in\n%s", text, out)
	})
}
