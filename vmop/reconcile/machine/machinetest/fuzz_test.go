package machinetest

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Users write the annotations of machines, and who may write pods and ConfigMaps those:
// whatever they say, what is decided is the same each time, and in proportion.
func FuzzAnnotations(f *testing.F) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	for range 5 {
		w.work()
	}
	stopped, _ := w.snapshot()
	stopped.Pods = nil
	running, _ := w.snapshot()
	f.Add("restart:1", "system=0a1b2c3d", "1", "now", "")
	f.Add("start", "", "x", "", running.Pod().Annotations[names.AnnotationStarted])
	f.Add("stop:", "system=,system=a,,=", "-1", "\x7f", `{"generation":1,"spec":{"vm":{"disks":[{}]}}}`)
	f.Fuzz(func(t *testing.T, power, disk, reset, force, pod string) {
		size := 0
		for _, s := range []string{power, disk, reset, force, pod} {
			if !utf8.ValidString(s) {
				return // the API server takes none
			}
			size += len(s)
		}
		for _, s := range []machine.Snapshot{stopped, running} {
			s.VM = s.VM.DeepCopy()
			s.VM.Annotations = map[string]string{
				names.AnnotationPowerRequest: power, names.AnnotationNewDisk: disk, names.AnnotationResetRequest: reset, names.AnnotationForceStop: force,
			}
			if s.Pod() != nil {
				setPod(&s, s.Pod().DeepCopy())
				for k := range s.Pod().Annotations {
					s.Pod().Annotations[k] = pod
				}
				s.Pod().Annotations[names.AnnotationCertificate] = pod
			}
			s.ConfigMap = s.ConfigMap.DeepCopy()
			s.ConfigMap.Annotations[names.AnnotationGranted], s.ConfigMap.Annotations[names.AnnotationResetCounter] = pod, reset
			for _, policy := range []spec.RunPolicy{"", spec.RunPolicyManual} {
				s.VM.Spec.RunPolicy = policy
				p := machine.Decide(s)
				if again := machine.Decide(s); !reflect.DeepEqual(p, again) {
					t.Fatalf("%+v, and once more %+v", p, again)
				}
				told, err := json.Marshal([]any{p.Statuses, p.Events})
				if err != nil {
					t.Fatal(err)
				}
				if limit := 64<<10 + 64*size; len(told) > limit {
					t.Fatalf("%d bytes are told of %d", len(told), size)
				}
				for _, a := range p.Actions {
					if c, is := a.(reconcile.Create); is {
						if _, is := c.Object.(*corev1.PersistentVolumeClaim); is && disk == "" {
							t.Fatalf("a disk is made anew that nobody asked for: %s", a.Target())
						}
					}
				}
			}
		}
	})
}
