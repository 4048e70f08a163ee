package machine

import (
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
)

func begin(s *Snapshot) *decision {
	d := &decision{subject: subject{s: s, vm: manifest.Defaulted(s.VM), shown: &s.VM.Status}}
	d.amendments = spec.Amend(&d.vm.Spec)
	d.pod = lookAtPod(s, d.vm)
	d.findClass()
	believed := *s.VM
	s.Authors.disbelieve(&believed.Status, d.pod.former())
	s.VM, d.stored = &believed, &believed.Status
	return d
}
