package attachmenttest

import (
	"math/rand/v2"
	"slices"
	"strings"
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
			Fault: "a condition says all that there is to say", Promise: "a message is one line",
			After: promises.Ramble[attachment.Snapshot],
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
			Fault: "what is in the way is said to go", Promise: "what is in the way is looked for again",
			After: func(_ *attachment.Snapshot, p *reconcile.Plan) { p.Wake = time.Time{} },
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
			Fault: "exporters are never asked to end", Promise: "a machine starts without what does not end",
			After: promises.Without[attachment.Snapshot](func(a reconcile.Action) bool {
				_, is := a.(reconcile.DeletePod)
				return is
			}),
		},
		{
			Fault: "where a guest has had it is forgotten", Promise: "the next pod has what is attached",
			Before: func(s *attachment.Snapshot) {
				for i := range s.Machine.Status.Attachments {
					s.Machine.Status.Attachments[i].Place = 0
				}
			},
		},
		{
			Fault: "what a pod was made with is free when its attachment goes", Promise: "nothing is left of an attachment",
			Before: func(s *attachment.Snapshot) {
				if s.Attachment.DeletionTimestamp != nil && s.Pod != nil {
					s.Pod.Annotations = nil
					if c := s.Attachment.Status.Connection; c != nil && c.Direct {
						s.Attachment.Status.Connection = nil
					}
				}
			},
		},
		{
			Fault: "the pod of a machine is not looked at", Promise: "there is one writer",
			Before: func(s *attachment.Snapshot) {
				s.Users = slices.DeleteFunc(slices.Clone(s.Users), func(p corev1.Pod) bool { return len(objects.AttachedBy(&p)) > 0 })
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

// Whatever attachments, machines, exporters and other pods do, and wherever an operator
// dies: one pod has the claim, no guest loses its disk, and it comes to rest.
func TestPromisesOfAttachments(t *testing.T) { TestDecide(t, attachment.Decide) }

// TestPromisesAreNoticed shows that the promises would be noticed to be broken.
func TestPromisesAreNoticed(t *testing.T) { kind().Break(t) }

// TestMountsAreChecked shows that the world has machines whose pods have the volumes of
// attachments, and notices what would be wrong about that.
func TestMountsAreChecked(t *testing.T) {
	const lives = 300
	for fault, c := range map[string]struct {
		promise string
		mounts  func(attachment.Start) ([]objects.Attached, string, time.Time)
	}{
		"none": {"", attachment.Mounts},
		"nobody else's pod is looked at": {"there is one writer", func(s attachment.Start) ([]objects.Attached, string, time.Time) {
			s.Pods = nil
			return attachment.Mounts(s)
		}},
		"an exporter is not waited for": {"there is one writer", func(s attachment.Start) ([]objects.Attached, string, time.Time) {
			all, _, _ := attachment.Mounts(s)
			return all, "", time.Time{}
		}},
	} {
		t.Run(fault, func(t *testing.T) {
			noticed, mounted := false, 0
			for n := range uint64(lives) {
				w, r := newWorld(), rand.New(rand.NewPCG(n, 1))
				w.Draw, w.mounts = func(_ string, n int) int { return r.IntN(n) }, c.mounts
				v := w.life()
				if c.promise == "" && v != nil {
					t.Fatalf("%v\n%s", v, strings.Join(w.Log, "\n"))
				}
				noticed, mounted = noticed || v != nil && v.Promise == c.promise, mounted+w.mounted
			}
			if c.promise != "" && !noticed {
				t.Errorf("nobody notices; want %q", c.promise)
			}
			if c.promise == "" && mounted < lives/10 {
				t.Errorf("pods had %d volumes in %d lives", mounted, lives)
			}
		})
	}
}

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) { kind().Registered(t) }

// Promises lists what the world looks at, and nothing else.
func TestEveryPromiseIsListed(t *testing.T) { promises.Listed(t, Promises()) }
