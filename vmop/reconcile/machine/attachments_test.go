package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The runner is told of the attachments of its own pod, in the order of their age, and of
// no others; whatever their status says, it has a configuration.
func TestAttachmentsAreTold(t *testing.T) {
	w := running(t, nil)
	fingerprint := strings.Repeat("0a", 32)
	make := func(name, vm string, age time.Duration, c *spec.AttachmentConnection) spec.VirtualMachineBlockDeviceAttachment {
		a := spec.NewAttachment("default", name, vm, spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: name})
		a.UID, a.CreationTimestamp, a.Status.Connection = types.UID("uid-"+name), metav1.NewTime(w.now.Add(-age)), c
		return *a
	}
	plan := w.decided(func(s *machine.Snapshot) {
		pod := s.Pod.UID
		s.Attachments = []spec.VirtualMachineBlockDeviceAttachment{
			make("young", s.VM.Name, time.Minute, &spec.AttachmentConnection{PodUID: pod}),
			make("old", s.VM.Name, time.Hour, &spec.AttachmentConnection{PodUID: pod, Address: "[fd00::1]:10809", Fingerprint: fingerprint, Detach: true}),
			make("before", s.VM.Name, time.Hour, &spec.AttachmentConnection{PodUID: "former", Address: "192.0.2.1:10809", Fingerprint: fingerprint}),
			make("waiting", s.VM.Name, time.Hour, nil),
			make("other", "other", time.Hour, &spec.AttachmentConnection{PodUID: pod}),
			make("forged", s.VM.Name, time.Second, &spec.AttachmentConnection{PodUID: pod, Address: "nowhere", Fingerprint: "x"}),
		}
	})
	var got []runnerconfig.Attachment
	for _, a := range plan.Actions {
		apply, is := a.(reconcile.Apply)
		if !is {
			continue
		}
		if cm, is := apply.Object.(*corev1.ConfigMap); is {
			c, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey]))
			if err != nil {
				t.Fatal(err)
			}
			runnerconfig.Default(&c)
			if err := runnerconfig.Validate(&c); err != nil {
				t.Error(err)
			}
			got = c.Runner.VM.Attachments
		}
	}
	want := []runnerconfig.Attachment{
		{UID: "uid-old", Name: "old", Address: "[fd00::1]:10809", Fingerprint: fingerprint, Detach: true}, {UID: "uid-young", Name: "young"}, {UID: "uid-forged", Name: "forged"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
