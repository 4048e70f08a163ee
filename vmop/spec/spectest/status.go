package spectest

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

// drawMeta draws what an author gives an object of a namespace: a name of at most so many
// letters, and sometimes a namespace and labels.
func drawMeta(t *rapid.T, most int) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:      longName(t, "name", most),
		Namespace: rapid.SampledFrom([]string{"", "default", "vmop-demo"}).Draw(t, "namespace"),
	}
	if maybe(t, "labels") {
		meta.Labels = Labels().Draw(t, "labels")
	}
	return meta
}

// longName draws the name of an object, often short, and rarely of as many letters as
// there may be.
func longName(t *rapid.T, what string, most int) string {
	if long(t, what) {
		return rapid.SampledFrom([]string{strings.Repeat("n", most), strings.Repeat("0.a-", most)[:most-1] + "z"}).Draw(t, "the longest "+what)
	}
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9]`), subdomain()).Draw(t, what)
}

// long is true more often than many: long texts take less time than long lists.
func long(t *rapid.T, what string) bool { return rapid.IntRange(0, 11).Draw(t, "long "+what) == 7 }

func hasStatus(t *rapid.T) bool { return rapid.IntRange(0, 3).Draw(t, "has status") == 0 }

func drawUID(t *rapid.T, what string) types.UID {
	if !maybe(t, what) {
		return ""
	}
	return types.UID(rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(t, what))
}

func drawTime(t *rapid.T, what string) *metav1.Time {
	if !maybe(t, what) {
		return nil
	}
	return new(metav1.Unix(rapid.Int64Range(0, 4e9).Draw(t, what), 0))
}

// drawMessage draws a text of a status, which may be missing.
func drawMessage(t *rapid.T, what string) string {
	if !maybe(t, what) {
		return ""
	}
	return Text().Draw(t, what)
}

// drawConditions draws conditions, of the types that a kind has and of others.
func drawConditions(t *rapid.T, of ...string) []spec.Condition {
	var out []spec.Condition
	for i := range count(t, "conditions", len(of), 16) {
		c := spec.Condition{
			Status:             rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, "status"),
			ObservedGeneration: rapid.Int64Range(0, 9).Draw(t, "observedGeneration"),
			LastTransitionTime: metav1.Unix(rapid.Int64Range(0, 4e9).Draw(t, "lastTransitionTime"), 0),
			Reason:             rapid.StringMatching(`[A-Z][A-Za-z]{0,12}`).Draw(t, "reason"),
			Message:            drawMessage(t, "message"),
		}
		if c.Type = fmt.Sprintf("Other%d", i); i < len(of) {
			c.Type = of[i]
		}
		out = append(out, c)
	}
	return out
}

func drawDiskStatus(t *rapid.T, s *spec.VirtualDiskStatus) {
	s.Phase = rapid.SampledFrom([]spec.DiskPhase{
		"", spec.DiskPending, spec.DiskProvisioning, spec.DiskWaitForFirstConsumer, spec.DiskWaitForUserUpload,
		spec.DiskReady, spec.DiskResizing, spec.DiskFailed, spec.DiskTerminating,
	}).Draw(t, "phase")
	s.ObservedGeneration = rapid.Int64Range(0, 9).Draw(t, "observedGeneration")
	if maybe(t, "capacity") {
		s.Capacity = new(Bytes(0, 1<<44).Draw(t, "capacity"))
	}
	s.Format = rapid.SampledFrom([]string{"", "raw", "qcow2"}).Draw(t, "format")
	s.Target, s.Import, s.Download = drawTarget(t), drawImport(t), drawDownload(t)
	s.Progress = drawProgress(t)
	for i := range count(t, "attachedToVirtualMachines", 2, 64) {
		s.AttachedToVirtualMachines = append(s.AttachedToVirtualMachines, spec.AttachedVirtualMachine{Name: fmt.Sprintf("vm%d", i)})
	}
	s.Conditions = drawConditions(t, "Ready", "Resized", "InUse")
}

func drawProgress(t *rapid.T) string {
	if !maybe(t, "progress") {
		return ""
	}
	return fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, "progress"))
}

func drawTarget(t *rapid.T) *spec.VirtualDiskTarget {
	if !maybe(t, "target") {
		return nil
	}
	return &spec.VirtualDiskTarget{
		PersistentVolumeClaim:    longName(t, "persistentVolumeClaim", 253),
		Namespace:                rapid.SampledFrom([]string{"", "vmop-images"}).Draw(t, "namespace"),
		PersistentVolumeClaimUID: drawUID(t, "persistentVolumeClaimUID"),
	}
}

func drawImport(t *rapid.T) *spec.VirtualDiskImport {
	if !maybe(t, "import") {
		return nil
	}
	return &spec.VirtualDiskImport{
		Attempts: rapid.Int32Range(0, 1<<31-1).Draw(t, "attempts"),
		PodUID:   drawUID(t, "podUID"), FailedAt: drawTime(t, "failedAt"),
		Request: drawMessage(t, "request"), Message: drawMessage(t, "message"),
		Final: rapid.Bool().Draw(t, "final"), CloneRefused: drawUID(t, "cloneRefused"),
		Step:      rapid.SampledFrom([]string{"", "downloading", "uploading", "verifying", "unpacking", "copying", "converting"}).Draw(t, "step"),
		DoneBytes: rapid.Int64Min(0).Draw(t, "doneBytes"), TotalBytes: rapid.Int64Min(0).Draw(t, "totalBytes"),
	}
}

func drawDownload(t *rapid.T) *spec.VirtualDiskDownload {
	if !maybe(t, "download") {
		return nil
	}
	return &spec.VirtualDiskDownload{
		Request: drawMessage(t, "request"),
		Phase:   rapid.SampledFrom([]spec.DownloadPhase{"", spec.DownloadPending, spec.DownloadReady, spec.DownloadRefused, spec.DownloadEnded}).Draw(t, "phase"),
		Message: drawMessage(t, "message"), PodUID: drawUID(t, "podUID"),
	}
}
