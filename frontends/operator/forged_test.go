package main

import (
	"fmt"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Who may write any status, and writes the operator's part of one, is told of and
// stops no machine: what is the operator's is soon as it was.
func TestForgedStatus(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(machine("one", "Running"))
	t.phase("one", spec.PhaseRunning)
	patch := func(text, subresource string) {
		var at []string
		if subresource != "" {
			at = append(at, subresource)
		}
		if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "mallory"}, at...); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"guestShutdownStops":true}}`, "")
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	uid := t.podUID("one")
	patch(fmt.Sprintf(`{"status":{"nodeName":"forged","lastEnd":{"podUID":%q,"cause":"guest-shutdown","message":"forged","time":"2026-01-01T00:00:00Z","observedGeneration":%d}}}`,
		uid, vm.Generation), "status")
	t.eventually("what was forged is gone", func() error {
		vm, err := t.status("one")
		if err == nil && (vm.Status.LastEnd != nil || vm.Status.NodeName == "forged") {
			err = fmt.Errorf("node %s, end %+v", vm.Status.NodeName, vm.Status.LastEnd)
		}
		return err
	})
	t.eventually("it is told of", func() error {
		events, err := t.kube.EventsV1().Events(t.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == spec.ReasonStatusOfOthers && e.Regarding.Name == "one" {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
	if vm, err = t.status("one"); err != nil || vm.Spec.VM.State != spec.StateRunning {
		t.Errorf("state %s, %v", vm.Spec.VM.State, err)
	}
	t.same("the pod's UID", uid, t.podUID("one"))
}
