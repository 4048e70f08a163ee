//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testimages"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/spec"
)

// The images, and archive, the file with one.
const (
	runnerImage    = testimages.Runner
	newRunnerImage = testimages.NewRunner
	operatorImage  = testimages.Operator
)

func archive(image string) string { return testimages.Archive(images, image) }

// On the node, the images are what they were when they were built: the helper for
// bridges has its capability, and Secure Boot refuses what nobody has signed. A machine
// that moves from one QEMU to the next keeps its machine type and UEFI variables.
func TestTheRunnersImagesInPods(t *testing.T) {
	explainOnFailure(t)
	prepare(t)
	if err := theNode.ImportArchive(withPatience(t), archive(newRunnerImage)); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{runnerImage, newRunnerImage} {
		applyObjects(t, machine(t, "machine.yaml", func(vm *vmop.VirtualMachine) {
			vm.Spec.VM.Firmware, vm.Spec.Image.Source = spec.FirmwareSecure, image
		}), nil)
		awaitLog(t, "Access Denied")
		if out := kubectl(t, "exec", "-n", namespace, "tiny", "--", "getcap", qemucmd.GenericHost().BridgeHelper); !strings.Contains(out, "cap_net_admin=ep") {
			t.Errorf("%s: the helper for bridges has %q", image, out)
		}
		out := kubectl(t, "logs", "-n", namespace, "tiny")
		if strings.Contains(out, tinyguest.Ready) || !strings.Contains(out, "starting QEMU pc-q35-7.2") {
			t.Errorf("%s: the guest has started, or has another machine:\n%s", image, out)
		}
		kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--wait=true")
	}
}
