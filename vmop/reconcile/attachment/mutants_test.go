package attachment_test

import (
	"math/rand/v2"
	"slices"
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

// mutant is a decision with one fault, and the promise that must notice it.
type mutant struct {
	fault, promise string
	before         func(*attachment.Snapshot)
	after          func(*attachment.Snapshot, *reconcile.Plan)
}

// worldsOfMutants are so many that each fault shows in many of them.
const worldsOfMutants uint64 = 1500

// decide is the decision with the fault. A mutant that sees things otherwise has objects
// of its own.
func (m *mutant) decide(s attachment.Snapshot) reconcile.Plan {
	mine := s
	if m.before != nil {
		mine.Attachment, mine.Machine, mine.Pod, mine.Exporter = s.Attachment.DeepCopy(), s.Machine.DeepCopy(), s.Pod.DeepCopy(), s.Exporter.DeepCopy()
		m.before(&mine)
	}
	p := attachment.Decide(mine)
	if m.after != nil {
		m.after(&s, &p)
	}
	return p
}

// without leaves out some actions.
func without(drop func(reconcile.Action) bool) func(*attachment.Snapshot, *reconcile.Plan) {
	return func(_ *attachment.Snapshot, p *reconcile.Plan) { p.Actions = slices.DeleteFunc(p.Actions, drop) }
}

// adds is a mutant's plan with another action.
func adds(a func(*attachment.Snapshot) reconcile.Action) func(*attachment.Snapshot, *reconcile.Plan) {
	return func(s *attachment.Snapshot, p *reconcile.Plan) {
		if a := a(s); a != nil {
			p.Actions = append([]reconcile.Action{a}, p.Actions...)
		}
	}
}

func released(s *attachment.Snapshot) {
	for i := range s.Machine.Status.Attachments {
		s.Machine.Status.Attachments[i].Phase = "Detached"
	}
}

func mutants() []mutant {
	return []mutant{
		{
			fault: "a plan depends on how often it is asked for", promise: "equal snapshots give equal plans",
			after: func() func(*attachment.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *attachment.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			fault: "the snapshot is changed", promise: "a snapshot is not changed",
			after: func(s *attachment.Snapshot, _ *reconcile.Plan) {
				s.Attachment.Labels = map[string]string{"seen": "yes"}
			},
		},
		{
			fault: "no condition is told", promise: "what is awaited is told",
			after: func(_ *attachment.Snapshot, p *reconcile.Plan) {
				for i := range p.Statuses {
					delete(p.Statuses[i].Status, "conditions")
				}
			},
		},
		{
			fault: "what was asked for is there", promise: "what is attached is there",
			before: func(s *attachment.Snapshot) {
				for i := range s.Machine.Status.Attachments {
					s.Machine.Status.Attachments[i].Phase = "Attached"
				}
			},
		},
		{
			fault: "a connection is kept for the next run", promise: "a connection is for the run that there is",
			before: func(s *attachment.Snapshot) {
				if c := s.Attachment.Status.Connection; c != nil && s.Pod != nil {
					s.Pod.UID = c.PodUID
				}
			},
		},
		{
			fault: "a detached disk is one that nobody waits for", promise: "a guest has its disk until it has released it",
			before: released,
		},
		{
			fault: "other pods are not looked at", promise: "there is one writer",
			before: func(s *attachment.Snapshot) { s.Users = nil },
		},
		{
			fault: "finalizers are not needed", promise: "what has an exporter is held",
			before: func(s *attachment.Snapshot) {
				if s.Attachment.DeletionTimestamp == nil {
					s.Attachment.Finalizers = []string{names.FinalizerAttachment}
				}
			},
		},
		{
			fault: "exporters end by themselves", promise: "nothing is left of an attachment",
			before: func(s *attachment.Snapshot) {
				if s.Attachment.DeletionTimestamp != nil {
					s.Exporter = nil
				}
			},
		},
		{
			fault: "any pod of the name is the exporter", promise: "a pod of somebody else is left alone",
			before: func(s *attachment.Snapshot) {
				if s.Exporter != nil {
					s.Exporter.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Attachment.UID)}
				}
			},
		},
		{
			fault: "a claim is applied", promise: "nothing else is written",
			after: adds(func(*attachment.Snapshot) reconcile.Action {
				return reconcile.DeleteSecret{Name: "a-vmbda", UID: "1", ResourceVersion: "1"}
			}),
		},
		{
			fault: "a finalizer is written without need", promise: "the world comes to rest",
			after: adds(func(s *attachment.Snapshot) reconcile.Action {
				if len(s.Attachment.Finalizers) == 0 || s.Attachment.DeletionTimestamp != nil {
					return nil
				}
				return reconcile.SetFinalizers{Kind: names.KindAttachment, Name: s.Attachment.Name, UID: s.Attachment.UID, ResourceVersion: s.Attachment.ResourceVersion, Finalizers: s.Attachment.Finalizers}
			}),
		},
		{
			fault: "nothing is let go", promise: "what is deleted goes",
			after: without(func(a reconcile.Action) bool {
				f, is := a.(reconcile.SetFinalizers)
				return is && len(f.Finalizers) == 0
			}),
		},
		{
			fault: "no exporter is made", promise: "what can be attached is attached",
			after: without(func(a reconcile.Action) bool {
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

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) {
	for n := range uint64(100) {
		if v := lived(attachment.Decide, n); v != nil {
			t.Fatalf("without a fault: %v", v)
		}
	}
	for _, m := range mutants() {
		t.Run(m.fault, func(t *testing.T) {
			t.Parallel()
			for n := range worldsOfMutants {
				// Another promise may notice it first, in this life or that.
				if v := lived(m.decide, n); v != nil && v.promise == m.promise {
					return
				}
			}
			t.Errorf("nobody notices; want %q", m.promise)
		})
	}
}

// lived is the promise that is broken first in the life of a number; nil if none is.
func lived(decide func(attachment.Snapshot) reconcile.Plan, number uint64) *violation {
	w := newWorld()
	r := rand.New(rand.NewPCG(number, 0))
	w.draw = func(_ string, n int) int { return r.IntN(n) }
	w.decide = decide
	return w.life()
}

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) {
	named, broken := promises.Named(t), map[string]bool{}
	for _, m := range mutants() {
		broken[m.promise] = true
		if !slices.Contains(named, m.promise) {
			t.Errorf("%q breaks %q, which nobody has promised", m.fault, m.promise)
		}
	}
	for _, p := range named {
		if !broken[p] {
			t.Errorf("no mutant breaks %q", p)
		}
	}
}

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
