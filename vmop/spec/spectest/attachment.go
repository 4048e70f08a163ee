package spectest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Attachment generates attachments of disks to machines that [spec.ValidateAttachment]
// finds nothing wrong with, sometimes with a status.
func Attachment() *rapid.Generator[*spec.VirtualMachineBlockDeviceAttachment] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualMachineBlockDeviceAttachment {
		a := &spec.VirtualMachineBlockDeviceAttachment{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindAttachment},
			ObjectMeta: drawMeta(t, spec.MaxAttachmentName),
			Spec: spec.VirtualMachineBlockDeviceAttachmentSpec{
				VirtualMachineName: longName(t, "virtualMachineName", 253),
				BlockDeviceRef: spec.AttachedBlockDevice{
					Kind: rapid.SampledFrom([]spec.AttachedBlockDeviceKind{spec.AttachedDisk, spec.AttachedClaim}).Draw(t, "kind"),
					Name: longName(t, "blockDeviceRef", 253),
				},
			},
		}
		if hasStatus(t) {
			drawAttachmentStatus(t, &a.Status)
		}
		return a
	})
}

func drawAttachmentStatus(t *rapid.T, s *spec.VirtualMachineBlockDeviceAttachmentStatus) {
	s.Phase = rapid.SampledFrom([]spec.AttachmentPhase{
		"", spec.AttachmentPending, spec.AttachmentInProgress, spec.AttachmentAttached, spec.AttachmentFailed, spec.AttachmentTerminating,
	}).Draw(t, "phase")
	s.ObservedGeneration = rapid.Int64Range(0, 9).Draw(t, "observedGeneration")
	if maybe(t, "virtualMachineName") {
		s.VirtualMachineName = longName(t, "virtualMachineName", 253)
	}
	s.Place = rapid.Int32Range(0, limits.MaxAttached).Draw(t, "place")
	if maybe(t, "connection") {
		fingerprint := rapid.StringMatching(`([0-9a-f]{64})?`)
		s.Connection = &spec.AttachmentConnection{
			PodUID: drawUID(t, "podUID"), Key: fingerprint.Draw(t, "key"), Fingerprint: fingerprint.Draw(t, "fingerprint"),
			Address: rapid.SampledFrom([]string{"", "10.1.2.3:10809", "[2001:db8::1]:10809"}).Draw(t, "address"),
			Direct:  rapid.Bool().Draw(t, "direct"), Detach: rapid.Bool().Draw(t, "detach"),
		}
	}
	s.Conditions = drawConditions(t, "BlockDeviceReady", "VirtualMachineReady", "DiskAttachmentCapacityAvailable", "Attached", "Terminating")
}
