package controller

import (
	"context"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (k *machines) kind() kind[machinekind.Snapshot] {
	return kind[machinekind.Snapshot]{
		observe: k.observe, decide: machinekind.Decide, prepare: k.prepare, told: k.countEnds,
	}
}

func (k *machines) countEnds(_ context.Context, _ *observed, events []reconcile.Event) {
	for i := range events {
		if machinekind.TellsEnd(&events[i]) {
			k.ends.WithLabelValues(endNamed(events[i].Reason)).Inc()
		}
	}
}

// prepare lets a machine start when it is its turn, and verifies at the API server a plan that
// releases a machine or deletes its disks. A machine that waits for a pod that no cache shows wakes
// by itself.
func (k *machines) prepare(ctx context.Context, o *observed, plan reconcile.Plan, memory *subjectMemory) (p *prepared, err error) {
	s := &o.snapshot
	p = &prepared{plan: plan}
	var t *turn
	p.answered = func(a reconcile.Action, answer client.Object, err error) {
		if err == nil && makesClaim(a) {
			k.starts.claimCreated(s.VM.Namespace, a.Target().Name, memory.looked)
		}
		if t != nil {
			t.answered(a, answer, err)
		}
	}
	p.end = func(executed bool) {
		if t != nil {
			t.end()
		}
		switch {
		case !executed:
		case slices.ContainsFunc(p.plan.Actions, makesClaim):
			memory.asked = k.now()
		case !createsObjects(p.plan.Actions):
			memory.asked = time.Time{}
		}
	}
	if p.plan.StartsPod() {
		if memory.asked.IsZero() {
			memory.asked = o.now
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
		p.until, _ = ctx.Deadline()
		if t, err = k.starts.begin(ctx, s.VM, s.Attachments, plan, memory.asked); t == nil {
			p.waits = err == nil
			return p, err
		}
		memory.asked, memory.turns = time.Time{}, 0
		seen := s.Pods
		if s.Pods, err = t.pods(ctx, k.reader, s); err != nil {
			return p, err
		}
		if !slices.EqualFunc(seen, s.Pods, samePod) {
			p.plan = machinekind.Decide(*s)
		}
		if again := o.now.Add(recheck); t.unshown && !p.plan.StartsPod() && (p.plan.Wake.IsZero() || again.Before(p.plan.Wake)) {
			p.plan.Wake = again
		}
	}
	if has := s.Pod(); p.plan.Releases() && (has == nil || p.plan.DeletesConfigMaps()) {
		// The previous operator may have created one that the cache does not show.
		name := objects.PodName(s.VM.Name)
		if has != nil {
			name = has.Name
		}
		now, err := k.livePod(ctx, s.VM.Namespace, name)
		if err != nil {
			return p, err
		}
		if has != nil && (now == nil || now.UID != has.UID) {
			p.waits = true // for the cache: no start is decided without a turn
			return p, nil
		}
		s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return p.Name == name })
		if now != nil {
			s.Pods = append(s.Pods, *now)
		}
		p.plan = machinekind.Decide(*s)
	}
	if p.plan.DeletesClaims() {
		// The user may have changed the machine meanwhile.
		if err = k.refresh(ctx, o); err != nil {
			return p, err
		}
		p.plan = machinekind.Decide(*s)
	}
	return p, nil
}

func samePod(a, b corev1.Pod) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}
