package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// TestOldViewForgetsNothing is an operator that begins with a machine as it was before the
// last operator wrote what came of its run policy, and with pods as they are.
func TestOldViewForgetsNothing(t *testing.T) {
	for _, row := range []struct {
		name    string
		happens func(*world)
		runs    bool
	}{
		{"a guest that powered itself off, whose pod is gone", func(w *world) {
			w.choose = func(string, int) int { return 1 } // the runner's report gets through
			w.finish(get[*corev1.Pod](w, thePod), runnerconfig.CauseGuestShutdown)
			w.choose = func(string, int) int { return 0 }
			clear(w.lastEnds)
			w.put(thePod, nil)
		}, false},
		{"a request to stop that was answered", func(w *world) {
			w.askFor(get[*spec.VirtualMachine](w, theVM), machine.VerbStop)
			w.comesToRest()
		}, false},
		{"a request to start that was answered, and an end since", func(w *world) {
			w.askFor(get[*spec.VirtualMachine](w, theVM), machine.VerbStop)
			w.comesToRest()
			w.askFor(get[*spec.VirtualMachine](w, theVM), machine.VerbStart)
			w.comesToRest()
			w.finish(get[*corev1.Pod](w, thePod), runnerconfig.CauseGuestShutdown)
			w.comesToRest()
		}, false},
	} {
		for _, policy := range []spec.RunPolicy{spec.RunPolicyAlwaysOnUnlessStoppedManually, spec.RunPolicyManual} {
			t.Run(row.name+"/"+string(policy), func(t *testing.T) {
				// Whatever it had seen last.
				for before := 0; ; before++ {
					more := true
					var w *world
					if err := (&world{}).guarded(func() {
						w = policyWorld(policy, true)
						h := w.objects[theVM]
						row.happens(w)
						if more = before < len(h.versions)-1; !more {
							return
						}
						for key, o := range w.objects {
							if o.seen = len(o.versions) - 1; key == theVM {
								o.seen = before
							}
						}
						for range 3 {
							w.reconcile(false)
							w.check()
						}
						w.comesToRest()
						if w.runs() != row.runs {
							t.Errorf("version %d was seen last; the machine runs: %v", before, !row.runs)
						}
					}); err != nil {
						t.Errorf("version %d was seen last: %v", before, err)
					}
					if t.Failed() {
						t.Fatal(strings.Join(w.log, "\n"))
					}
					if !more {
						break
					}
				}
			})
		}
	}
}
