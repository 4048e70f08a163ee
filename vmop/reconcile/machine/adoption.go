package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"k8s.io/apimachinery/pkg/types"
)

// adopted returns since when the machine has had the pod of a former one; zero if the pod is its
// own.
func (d *decision) adopted() time.Time {
	if d.pod.pod == nil {
		return time.Time{}
	}
	by, at, noted := strings.Cut(d.pod.pod.Annotations[names.AnnotationAdopted], " ")
	if !noted || by != string(d.s.VM.UID) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}
	}
	return t
}

func adoption(vm types.UID, at time.Time) string {
	return string(vm) + " " + at.UTC().Format(time.RFC3339)
}

// disagrees returns why the machine does not take over the orphaned pod of its name; empty if it
// does. It is the same guest if UUID and disks are those of the manifest.
func (d *decision) disagrees() string {
	pod := d.pod.pod
	then := startedWith(pod.Annotations[names.AnnotationStarted])
	if then == nil {
		return "it does not say what it was started with"
	}
	if was, is := then.Spec.VM.MachineUUID, d.vm.Spec.VM.MachineUUID; is != "" && !strings.EqualFold(was, is) {
		if was == "" {
			was = "that of its data directory"
		}
		return fmt.Sprintf("it has another UUID than spec.vm.machineUuid: %s", was)
	}
	wanted := 1 // the runner's data
	for _, disk := range machineconfig.Disks(d.vm) {
		if disk.Claim != "" {
			wanted++
		}
	}
	mine, shared, attached := objects.ClaimNames(d.vm), objects.SharedClaims(d.vm), objects.AttachedBy(pod)
	has := 0
	for _, claim := range objects.PodClaims(pod) {
		switch {
		case claim == names.ImageRepositoryClaim, slices.ContainsFunc(attached, func(a objects.Attached) bool { return a.Claim == claim }):
		case slices.Contains(mine, claim):
			has++
		case !slices.Contains(shared, claim):
			return fmt.Sprintf("it has claim %s, which the manifest does not name", claim)
		}
	}
	if has != wanted {
		return fmt.Sprintf("it has %d of the %d claims of disks and data that there should be", has, wanted)
	}
	return ""
}
