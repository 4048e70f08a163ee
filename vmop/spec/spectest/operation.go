package spectest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

// Operation generates operations on machines that [spec.ValidateOperation] finds nothing
// wrong with, sometimes with a status. Some have no name, and leave it to the API
// server.
func Operation() *rapid.Generator[*spec.VirtualMachineOperation] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualMachineOperation {
		o := &spec.VirtualMachineOperation{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindOperation},
			ObjectMeta: drawMeta(t, 253),
			Spec: spec.VirtualMachineOperationSpec{
				Type: rapid.SampledFrom([]spec.OperationType{
					spec.OperationStart, spec.OperationStop, spec.OperationRestart,
					spec.OperationEvict, spec.OperationMigrate, spec.OperationSuspend, spec.OperationResume,
				}).Draw(t, "type"),
				VirtualMachineName: longName(t, "virtualMachineName", 253),
			},
		}
		if maybe(t, "generateName") {
			o.GenerateName = strings.TrimRight(o.Name[:min(len(o.Name), 252)], ".-") + rapid.SampledFrom([]string{"-", ""}).Draw(t, "generateName")
			if !maybe(t, "name") {
				o.Name = ""
			}
		}
		o.Spec.Force = o.Spec.Type != spec.OperationStart && rapid.Bool().Draw(t, "force")
		if hasStatus(t) {
			drawOperationStatus(t, &o.Status)
		}
		return o
	})
}

func drawOperationStatus(t *rapid.T, s *spec.VirtualMachineOperationStatus) {
	s.Phase = rapid.SampledFrom([]spec.OperationPhase{
		"", spec.OperationPending, spec.OperationInProgress, spec.OperationCompleted,
		spec.OperationFailed, spec.OperationSuperseded, spec.OperationTerminating,
	}).Draw(t, "phase")
	s.Request = drawMessage(t, "request")
	s.VirtualMachineUID, s.PodUID = drawUID(t, "virtualMachineUID"), drawUID(t, "podUID")
	s.StartTime, s.Deadline, s.CompletionTime = drawTime(t, "startTime"), drawTime(t, "deadline"), drawTime(t, "completionTime")
	s.Conditions = drawConditions(t, "Completed", "SignalSent")
}
