package disk

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The greatest number of attempts that is counted, and of bytes of a message.
const (
	maxAttempts      = 1 << 20
	maxImportMessage = 2000
)

// progress records the progress of the attempt, which never decreases.
func (d *decision) progress() {
	d.plan.WakeAt(d.s.Now.Add(progressDelay)) // it is not watched
	got := d.s.Progress
	if got == nil {
		return
	}
	im := spec.VirtualDiskImport{}
	if d.disk.Status.Import != nil {
		im = *d.disk.Status.Import
	}
	im.Step, im.DoneBytes, im.TotalBytes = got.Step, got.Done, got.Total
	d.next.Import = &im
	if percent := got.Percent(); percent >= percentOf(d.disk.Status.Progress) {
		d.next.Progress = fmt.Sprintf("%d%%", percent)
	}
}

func percentOf(progress string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(progress, "%"))
	if err != nil {
		return 0
	}
	return n
}

// said returns the termination message of a pod that fills a disk, which only the pod vouches
// for.
func said(p *corev1.Pod) runnerconfig.Imported {
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil {
			return runnerconfig.ParseImported(t.Message)
		}
	}
	return runnerconfig.ParseImported("")
}

func (d *decision) count(p *corev1.Pod, got runnerconfig.Imported) {
	next := spec.VirtualDiskImport{Attempts: 1, PodUID: p.UID, Message: spec.BoundedMessage(got.Error), Final: got.Final, CloneRefused: types.UID(d.cloneRefused())}
	if len(next.Message) > maxImportMessage {
		next.Message = strings.ToValidUTF8(next.Message[:maxImportMessage], "")
	}
	if im := d.disk.Status.Import; im != nil {
		next.Attempts = min(im.Attempts, maxAttempts) + 1
	}
	next.FailedAt = new(metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)))
	d.next.Progress = ""
	d.next.Import = &next
	if d.uploaded() {
		// Another upload may succeed, once the user requests it.
		next.Request, next.Final = objects.UploadRequest(p), false
		d.needUpload(&next)
	} else {
		d.wait(conditions.ReasonDiskImportFailed, "%s; this was attempt %d", next.Message, next.Attempts)
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: conditions.ReasonDiskImportFailed, Action: "Import", Note: next.Message,
	})
}
