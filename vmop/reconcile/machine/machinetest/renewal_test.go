package machinetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A restart that is asked for has the pod replaced, unless the next one would not start: then the
// machine runs on and says why. A claim that has no volume may wait for that pod.
func TestRestartIsHeldBack(t *testing.T) {
	claim := func(change func(*corev1.PersistentVolumeClaim)) func(*machine.Snapshot) {
		return func(s *machine.Snapshot) {
			for i := range s.Claims {
				if s.Claims[i].Name == "web-system-disk" {
					change(&s.Claims[i])
				}
			}
		}
	}
	unbound := func(class *string, provisioner string) func(*machine.Snapshot) {
		return claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase, c.Spec.StorageClassName = corev1.ClaimPending, class
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, names.AnnotationsProvisioner[0], provisioner)
		})
	}
	for _, tt := range []struct {
		name   string
		change func(*machine.Snapshot)
		reason string // empty: it is restarted
		why    string
	}{
		{name: "nothing is in the way", change: func(*machine.Snapshot) {}},
		{name: "a claim that may wait for its first consumer", change: unbound(new("local"), "")},
		{"a claim whose volume is being made", unbound(new("fast"), "example.org/fast"), spec.ReasonRestartPending, "claim web-system-disk of spec.vm.disks[0] waits for a volume"},
		{"a claim without a class", unbound(nil, ""), spec.ReasonRestartPending, "claim web-system-disk of spec.vm.disks[0] waits for a volume"},
		{"a claim that is being deleted", claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }), spec.ReasonRestartBlocked,
			"claim web-system-disk of spec.vm.disks[0] is deleted with its data once no pod uses it"},
		{"a claim that is lost", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), spec.ReasonRestartBlocked, "claim web-system-disk of spec.vm.disks[0] has lost volume"},
		{"a class that is not there", func(s *machine.Snapshot) { s.VM.Spec.VirtualMachineClassName = "none" }, spec.ReasonRestartBlocked, "none"},
		{"a manifest that is not valid", func(s *machine.Snapshot) { s.VM.Spec.VM.Networks = []spec.Network{{}} }, spec.ReasonRestartBlocked, "spec.vm.networks[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := running(t, nil)
			p := w.decided(func(s *machine.Snapshot) {
				s.VM = s.VM.DeepCopy()
				tt.change(s)
				metav1.SetMetaDataAnnotation(&s.VM.ObjectMeta, names.AnnotationPowerRequest, machine.Request(machine.VerbRestart, "now"))
			})
			reason, message := said(p, spec.ConditionPodReady)
			replaced := slices.Contains(targets(p), "delete Pod web")
			if tt.reason == "" {
				if !replaced {
					t.Fatalf("it is not restarted: %v, %s: %s", targets(p), reason, message)
				}
				return
			}
			if replaced || reason != tt.reason {
				t.Fatalf("%v, %s: %s", targets(p), reason, message)
			}
			vm := &spec.VirtualMachine{}
			vm.Status.Conditions = []spec.Condition{{Type: spec.ConditionPodReady, Reason: reason, Message: message}}
			why, blocked := machine.RestartHeldBack(vm)
			if !strings.Contains(why, tt.why) || !strings.Contains(message, why) || blocked != (reason == spec.ReasonRestartBlocked) {
				t.Errorf("%q, blocked %v, of %q", why, blocked, message)
			}
		})
	}
}
