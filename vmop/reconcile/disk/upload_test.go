package disk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What holds up the pod of an upload is told on one line, once, for as long as it waits and
// afterwards: the command is in the line where there is room for it.
func TestUploadWhosePodDoesNotStart(t *testing.T) {
	const uid = types.UID("u1")
	for name, c := range map[string]struct {
		status corev1.PodStatus
		node   string
		says   string
	}{
		"no node yet": {says: "waits for a node"},
		"no node takes it": {status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available."}}}, says: "0/1 nodes are available"},
		"it is being started": {node: "n1", says: "is being started on node n1"},
	} {
		d := spec.NewDisk("lab", "data", resource.MustParse("1Gi"))
		d.UID, d.Finalizers = uid, []string{names.FinalizerDisk}
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceUpload}
		d.Annotations = map[string]string{names.AnnotationUploadRequest: "r1"}
		filled := objects.FilledDisk(d)
		claim := filled.VolumeClaim()
		claim.UID, claim.Status.Phase = "u2", corev1.ClaimBound
		d.Status.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: claim.Name, PersistentVolumeClaimUID: claim.UID}
		pod := filled.ImportJob(objects.Settings{RunnerImage: "runner"}, nil)
		pod.UID, pod.CreationTimestamp, pod.Status, pod.Spec.NodeName = "u3", metav1.NewTime(noon), c.status, c.node
		s := disk.Snapshot{Disk: d, Claim: claim, Pod: pod, Now: noon}

		for reason, now := range map[string]time.Time{
			conditions.ReasonPodNotStarted:    noon,
			conditions.ReasonDiskUploadNeeded: noon.Add(objects.TransferWait),
		} {
			s.Now = now
			plan := disk.Decide(s)
			ready := spec.FindCondition(told(t, d, plan).Status.Conditions, conditions.Ready)
			if long := promises.LongMessage(plan); long != "" || ready.Reason != reason ||
				!strings.Contains(ready.Message, c.says) || strings.Count(ready.Message, pod.Name) > 2 {
				t.Errorf("%s: %s: %s", name, ready.Reason, ready.Message)
			}
		}
	}
}
