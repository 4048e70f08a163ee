package disk_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mutant is a decision with one fault, and the promise that must notice it.
type mutant struct {
	fault, promise string
	before         func(*disk.Snapshot)
	after          func(*disk.Snapshot, *reconcile.Plan)
}

// worldsOfMutants are so many that each fault shows in many of them.
const worldsOfMutants uint64 = 1500

// decide is the decision with the fault. A mutant that sees things otherwise has objects
// of its own.
func (m *mutant) decide(s disk.Snapshot) reconcile.Plan {
	mine := s
	if m.before != nil {
		mine.Disk, mine.Claim, mine.Pod = s.Disk.DeepCopy(), s.Claim.DeepCopy(), s.Pod.DeepCopy()
		m.before(&mine)
	}
	p := disk.Decide(mine)
	if m.after != nil {
		m.after(&s, &p)
	}
	return p
}

// adds is a mutant's plan with another action.
func adds(a func(*disk.Snapshot) reconcile.Action) func(*disk.Snapshot, *reconcile.Plan) {
	return func(s *disk.Snapshot, p *reconcile.Plan) {
		if a := a(s); a != nil {
			p.Actions = append([]reconcile.Action{a}, p.Actions...)
		}
	}
}

// fillsAnyhow makes the pod whatever else is to be done.
func fillsAnyhow(when func(*disk.Snapshot) bool) func(*disk.Snapshot, *reconcile.Plan) {
	return adds(func(s *disk.Snapshot) reconcile.Action {
		if s.Pod != nil || !when(s) {
			return nil
		}
		return reconcile.Create{Object: objects.ImportJob(s.Disk, s.Settings, s.SourceClaim)}
	})
}

func made(s *disk.Snapshot) bool {
	return s.Claim != nil && s.Claim.Annotations[names.AnnotationMadeFor] == string(s.Disk.UID)
}

func noted(s *disk.Snapshot) bool {
	return made(s) && s.Disk.Status.Target != nil && s.Disk.Status.Target.PersistentVolumeClaimUID == s.Claim.UID
}

func mutants() []mutant {
	return []mutant{
		{
			fault: "a plan depends on how often it is asked for", promise: "equal snapshots give equal plans",
			after: func() func(*disk.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *disk.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			fault: "the snapshot is changed", promise: "a snapshot is not changed",
			after: func(s *disk.Snapshot, _ *reconcile.Plan) { s.Disk.Labels = map[string]string{"seen": "yes"} },
		},
		{
			fault: "a claim goes with its disk at once", promise: "no claim is deleted, and nothing is written over",
			after: adds(func(s *disk.Snapshot) reconcile.Action {
				if s.Claim == nil {
					return nil
				}
				return reconcile.DeleteClaim{Name: s.Claim.Name, UID: s.Claim.UID, ResourceVersion: s.Claim.ResourceVersion}
			}),
		},
		{
			fault: "a claim follows its disk in both directions", promise: "no claim shrinks",
			after: adds(func(s *disk.Snapshot) reconcile.Action {
				if !noted(s) {
					return nil
				}
				if q := s.Disk.Spec.PersistentVolumeClaim.Size; q.Cmp(s.Claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 {
					return reconcile.UpdateClaim{Name: s.Claim.Name, UID: s.Claim.UID, ResourceVersion: s.Claim.ResourceVersion, Storage: &q}
				}
				return nil
			}),
		},
		{
			fault: "no condition is told", promise: "what is awaited is told",
			after: func(_ *disk.Snapshot, p *reconcile.Plan) {
				for i := range p.Statuses {
					delete(p.Statuses[i].Status, "conditions")
				}
			},
		},
		{
			fault: "a claim is the disk", promise: "a disk that is ready has its content",
			before: func(s *disk.Snapshot) {
				if made(s) {
					s.Claim.Annotations[names.AnnotationFilled] = string(s.Disk.UID)
				}
			},
		},
		{
			fault: "machines are not looked at", promise: "a disk that a machine has is kept",
			before: func(s *disk.Snapshot) { s.Machines = nil },
		},
		{
			fault: "the pod is not looked at when the disk goes", promise: "nothing is left of a disk",
			before: func(s *disk.Snapshot) {
				if s.Disk.DeletionTimestamp != nil {
					s.Pod = nil
				}
			},
		},
		{
			fault: "the status does not know the claim", promise: "a claim that is gone is not made anew",
			before: func(s *disk.Snapshot) { s.Disk.Status.Target = nil },
		},
		{
			fault: "any pod is the disk's", promise: "a pod of somebody else is left alone",
			before: func(s *disk.Snapshot) {
				if s.Pod != nil {
					s.Pod.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Disk.UID)}
				}
			},
		},
		{
			fault: "the end of a pod is the disk", promise: "what is not filled is not called so",
			before: func(s *disk.Snapshot) {
				if s.Pod != nil && s.Pod.Status.Phase == corev1.PodFailed {
					s.Pod.Status.Phase = corev1.PodSucceeded
					s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"format":"raw"}`}}}}
				}
			},
		},
		{
			fault: "any claim of the name will do", promise: "nothing is put into a claim of somebody else",
			after: fillsAnyhow(func(s *disk.Snapshot) bool { return s.Claim != nil && !made(s) }),
		},
		{
			fault: "the claim is filled as soon as it is there", promise: "nothing is put into a claim before that is noted",
			after: fillsAnyhow(func(s *disk.Snapshot) bool { return made(s) && s.Disk.Status.Target == nil }),
		},
		{
			fault: "nobody sees that it is filled", promise: "a disk is filled once",
			before: func(s *disk.Snapshot) {
				if s.Claim != nil {
					delete(s.Claim.Annotations, names.AnnotationFilled)
				}
			},
		},
		{
			fault: "pods of others are not looked at", promise: "there is one writer",
			before: func(s *disk.Snapshot) { s.Users = nil },
		},
		{
			fault: "everything is allowed", promise: "what is not allowed is not fetched",
			before: func(s *disk.Snapshot) { s.Settings.Allowed.Everything = true },
		},
		{
			fault: "no failure is final", promise: "what fails for good is not tried again",
			after: fillsAnyhow(func(s *disk.Snapshot) bool {
				return noted(s) && s.Claim.Annotations[names.AnnotationFilled] == "" && s.Disk.DeletionTimestamp == nil && s.Disk.Status.Import != nil && s.Disk.Status.Import.Final
			}),
		},
		{
			fault: "attempts follow at once", promise: "attempts have pauses",
			before: func(s *disk.Snapshot) { s.Now = s.Now.Add(time.Hour) },
		},
		{
			fault: "a finalizer is written without need", promise: "the world comes to rest",
			after: adds(func(s *disk.Snapshot) reconcile.Action {
				if len(s.Disk.Finalizers) == 0 {
					return nil
				}
				return reconcile.SetFinalizers{Kind: names.KindDisk, Name: s.Disk.Name, UID: s.Disk.UID, ResourceVersion: s.Disk.ResourceVersion, Finalizers: s.Disk.Finalizers}
			}),
		},
		{
			fault: "nothing is let go", promise: "a disk that nobody has can be deleted",
			after: func(_ *disk.Snapshot, p *reconcile.Plan) {
				p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool {
					f, is := a.(reconcile.SetFinalizers)
					return is && f.Releases
				})
			},
		},
		{
			fault: "a disk with content is not ready", promise: "a disk that has its content becomes ready",
			before: func(s *disk.Snapshot) {
				if s.Claim != nil && s.Claim.Annotations[names.AnnotationFilled] != "" {
					s.Unreadable = "what is filled"
				}
			},
		},
	}
}

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) {
	for n := range uint64(100) {
		if v := lived(disk.Decide, n); v != nil {
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
func lived(decide func(disk.Snapshot) reconcile.Plan, number uint64) *violation {
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

// A quantity that means the same is no reason to write.
func TestQuantitiesMeanTheSame(t *testing.T) {
	a, b := resource.MustParse("1Gi"), resource.MustParse("1024Mi")
	d := spec.NewDisk("lab", "data", a)
	d.UID, d.Finalizers = "u1", []string{names.FinalizerDisk}
	c := objects.VirtualDiskClaim(d)
	c.UID, c.Status.Phase, c.Status.Capacity = "u2", corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: b}
	s := disk.Snapshot{Disk: d, Claim: c, Now: noon}
	for range 3 {
		for _, st := range disk.Decide(s).Statuses {
			w := newWorld()
			w.truth.disk = s.Disk
			w.status(st)
			s.Disk = w.truth.disk
		}
	}
	if p := disk.Decide(s); len(p.Actions)+len(p.Statuses) > 0 || s.Disk.Status.Phase != spec.DiskReady {
		t.Errorf("%+v\n%+v", p, s.Disk.Status)
	}
}
