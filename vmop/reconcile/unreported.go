package reconcile

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
)

// Unreported decides about a plan whose status the API server has refused, as it does where a
// stored value violates a rule of the definition. Events report what the status would have said
// and why it was refused: once, and again if the refusal changes. The status is retried after
// growing pauses.
//
// f is the refusal; before is the one before it since the status was last written, nil if there
// was none.
func Unreported(plan Plan, before *Failure, f Failure) Plan {
	out := Plan{Wake: Earlier(plan.Wake, f.RetryAt())}
	if before == nil || before.Message != f.Message {
		out.Events = append(out.Events, plan.Events...)
		out.Events = append(out.Events, Event{
			Type: corev1.EventTypeWarning, Reason: conditions.ReasonWriteRefused, Action: "Reconcile",
			Note: fmt.Sprintf("the API server refuses the status, which says nothing of the %s until this is corrected: %s", noun(f.Target), f.Message),
		})
	}
	return out
}

func noun(t Target) string {
	kind, _, _ := strings.Cut(t.Kind, "/")
	switch kind {
	case names.KindVirtualMachine:
		return "machine"
	case names.KindVMPool:
		return "pool"
	case names.KindOperation:
		return "operation"
	case names.KindDisk:
		return "disk"
	case names.KindImage, names.KindClusterImage:
		return "image"
	case names.KindAttachment:
		return "attachment"
	}
	return kind
}
