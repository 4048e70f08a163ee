package controller

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods of others come and go in namespaces in which no machine ever starts, and no memory is left
// of them.
func TestPodsOfOthersAreForgotten(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newStarts(nil, nil, func() time.Time { return now }, func() time.Time { return now })
	s.of("former").Looked(&observation.Look{Began: now})
	for i := range 10000 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("job", i), Name: "pod", UID: types.UID(strconv.Itoa(i))}}
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		s.awaits(pod)
		now = now.Add(time.Second)
		s.awaitsNoMore(pod)
		s.claimCreated(pod.Namespace+"-stopped", "disk", now)
	}
	if s.in["former"] != nil {
		t.Error("a look is kept that no start may rely on")
	}
	if len(s.in) > 500 {
		t.Errorf("%d namespaces are remembered", len(s.in))
	}
}

// A machine with new disks starts without a list of pods, but not beside a pod of others
// that has waited for one of them, which an operator that does not watch such pods does.
func TestNewClaimThatOthersAwait(t *testing.T) {
	for _, test := range []struct {
		name           string
		awaited, blind bool
	}{{name: "by nobody"}, {name: "by a pod of others", awaited: true}, {name: "and nobody watches", awaited: true, blind: true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newClusterWorld(t.Context(), func(what string, _ int) int {
				if what == "a machine's own" {
					return 1
				}
				return 0
			}, nil)
			w.kind, w.blind = true, test.blind
			rounds := func() {
				for range 10 {
					w.round()
					w.pass(time.Second)
				}
			}
			rounds()
			late := modelKey{spec.KindVirtualMachine, backupPod.namespace, "late"}
			runs := func() bool { return w.api.top(modelKey{kindPod, late.namespace, late.name}) != nil }
			lists := w.live.lists
			w.createMachine(late)
			if test.awaited {
				w.stranger()
			}
			broken := promises.Broken(rounds)
			switch {
			case test.blind != (broken != nil):
				t.Fatalf("broken: %v", broken)
			case test.blind:
				return
			case test.awaited:
				stored := into(w.api.top(late), &spec.VirtualMachine{})
				c := spec.FindCondition(stored.Status.Conditions, spec.ConditionPodReady)
				if runs() || c == nil || c.Reason != spec.ReasonDisksInUse {
					t.Errorf("it has a pod: %v; condition %+v", runs(), c)
				}
				w.stranger()
				w.tend(backupPod, 0)
				rounds()
			case w.live.lists != lists:
				t.Errorf("%d lists", w.live.lists-lists)
			}
			if !runs() {
				t.Error("it does not start")
			}
		})
	}
}
