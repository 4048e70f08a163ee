package attachment_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
)

type mutant = promises.Mutant[attachment.Snapshot]

// own has objects that a mutant may change.
func own(s attachment.Snapshot) attachment.Snapshot {
	s.Attachment, s.Machine, s.Pod, s.Exporter = s.Attachment.DeepCopy(), s.Machine.DeepCopy(), s.Pod.DeepCopy(), s.Exporter.DeepCopy()
	return s
}

func released(s *attachment.Snapshot) {
	for i := range s.Machine.Status.Attachments {
		s.Machine.Status.Attachments[i].Phase = "Detached"
	}
}

func mutants() []mutant {
	return []mutant{
		{
			Fault: "a plan depends on how often it is asked for", Promise: "equal snapshots give equal plans",
			After: func() func(*attachment.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *attachment.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			Fault: "the snapshot is changed", Promise: "a snapshot is not changed",
			After: func(s *attachment.Snapshot, _ *reconcile.Plan) {
				s.Attachment.Labels = map[string]string{"seen": "yes"}
			},
		},
		{
			Fault: "no condition is told", Promise: "what is awaited is told",
			After: func(_ *attachment.Snapshot, p *reconcile.Plan) {
				for i := range p.Statuses {
					delete(p.Statuses[i].Status, "conditions")
				}
			},
		},
		{
			Fault: "what was asked for is there", Promise: "what is attached is there",
			Before: func(s *attachment.Snapshot) {
				for i := range s.Machine.Status.Attachments {
					s.Machine.Status.Attachments[i].Phase = "Attached"
				}
			},
		},
		{
			Fault: "a connection is kept for the next run", Promise: "a connection is for the run that there is",
			Before: func(s *attachment.Snapshot) {
				if c := s.Attachment.Status.Connection; c != nil && s.Pod != nil {
					s.Pod.UID = c.PodUID
				}
			},
		},
		{
			Fault: "a detached disk is one that nobody waits for", Promise: "a guest has its disk until it has released it",
			Before: released,
		},
		{
			Fault: "other pods are not looked at", Promise: "there is one writer",
			Before: func(s *attachment.Snapshot) { s.Users = nil },
		},
		{
			Fault: "finalizers are not needed", Promise: "what has an exporter is held",
			Before: func(s *attachment.Snapshot) {
				if s.Attachment.DeletionTimestamp == nil {
					s.Attachment.Finalizers = []string{names.FinalizerAttachment}
				}
			},
		},
		{
			Fault: "exporters end by themselves", Promise: "nothing is left of an attachment",
			Before: func(s *attachment.Snapshot) {
				if s.Attachment.DeletionTimestamp != nil {
					s.Exporter = nil
				}
			},
		},
		{
			Fault: "any pod of the name is the exporter", Promise: "a pod of somebody else is left alone",
			Before: func(s *attachment.Snapshot) {
				if s.Exporter != nil {
					s.Exporter.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Attachment.UID)}
				}
			},
		},
		{
			Fault: "a claim is applied", Promise: "nothing else is written",
			After: promises.Adds(func(*attachment.Snapshot) reconcile.Action {
				return reconcile.DeleteSecret{Name: "a-vmbda", UID: "1", ResourceVersion: "1"}
			}),
		},
		{
			Fault: "a finalizer is written without need", Promise: "the world comes to rest",
			After: promises.Adds(func(s *attachment.Snapshot) reconcile.Action {
				if len(s.Attachment.Finalizers) == 0 || s.Attachment.DeletionTimestamp != nil {
					return nil
				}
				return reconcile.SetFinalizers{Kind: names.KindAttachment, Name: s.Attachment.Name, UID: s.Attachment.UID, ResourceVersion: s.Attachment.ResourceVersion, Finalizers: s.Attachment.Finalizers}
			}),
		},
		{
			Fault: "nothing is let go", Promise: "what is deleted goes",
			After: promises.Without[attachment.Snapshot](func(a reconcile.Action) bool {
				f, is := a.(reconcile.SetFinalizers)
				return is && len(f.Finalizers) == 0
			}),
		},
		{
			Fault: "no exporter is made", Promise: "what can be attached is attached",
			After: promises.Without[attachment.Snapshot](func(a reconcile.Action) bool {
				c, is := a.(reconcile.Create)
				if !is {
					return false
				}
				_, is = c.Object.(*corev1.Pod)
				return is
			}),
		},
	}
}

func kind() *promises.Kind[attachment.Snapshot] {
	return &promises.Kind[attachment.Snapshot]{
		Decide: attachment.Decide, Own: own, Mutants: mutants(),
		Live: func(_ *testing.T, draw func(string, int) int, decide func(attachment.Snapshot) reconcile.Plan) *promises.Violation {
			w := newWorld()
			w.Draw, w.Decide = draw, decide
			return w.life()
		},
	}
}

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) { kind().Break(t) }

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) { kind().Registered(t) }

// What an exporter's key is known by is what its runner says of itself.
func TestFingerprint(t *testing.T) {
	s := &corev1.Secret{Data: keys[0]}
	if got := objects.ExportFingerprint(s); len(got) != 64 || got == objects.ExportFingerprint(&corev1.Secret{Data: keys[1]}) {
		t.Errorf("%q", got)
	}
	if got := objects.ExportFingerprint(&corev1.Secret{}); got != "" {
		t.Errorf("of nothing it is %q", got)
	}
}
