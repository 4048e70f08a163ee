package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// startTimeout is how long a start may keep others waiting.
	startTimeout = time.Minute
	// podPage is how many pods are asked for at once.
	podPage = 500
)

// starts lets one machine of a namespace at a time get its pod, so that of several
// that share a claim each sees the pod of those before it. Machines of different
// namespaces have no claims in common and do not wait for each other.
//
// That every start looks at the API server itself is what makes this safe: a
// cache may not show a pod yet, and never shows those without a runner's labels.
// It costs one request for each start. What it cannot see is a pod that somebody
// else makes between the look and the creation; against that, Kubernetes has the
// access mode ReadWriteOncePod.
type starts struct {
	live client.Reader

	mu sync.Mutex
	// turns are those of the namespaces in which machines start now.
	turns map[string]*turns
}

// turns are taken by sending, for which there is room once.
type turns struct {
	taken chan struct{}
	// users is how many have their turn or wait for it.
	users int
}

func newStarts(live client.Reader) *starts {
	return &starts{live: live, turns: map[string]*turns{}}
}

// take waits for a turn in a namespace, which ends with the call of done.
func (s *starts) take(ctx context.Context, namespace string) (done func(), err error) {
	s.mu.Lock()
	t := s.turns[namespace]
	if t == nil {
		t = &turns{taken: make(chan struct{}, 1)}
		s.turns[namespace] = t
	}
	t.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(s.turns, namespace)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// begin waits for the machine's turn, which ends with the call of done, and
// replaces the snapshot's other pods by those that there are. The context that
// it returns ends the turn if it takes too long.
func (s *starts) begin(ctx context.Context, o *observation) (turn context.Context, done func(), err error) {
	leave, err := s.take(ctx, o.VM.Namespace)
	if err != nil {
		return nil, nil, err
	}
	turn, cancel := context.WithTimeout(ctx, startTimeout)
	done = func() { cancel(); leave() }
	pods, err := s.podsOf(turn, o.VM)
	if err != nil {
		done()
		return nil, nil, err
	}
	o.OtherPods = pods
	return turn, done, nil
}

// podsOf are the pods that share disks with the machine.
func (s *starts) podsOf(ctx context.Context, vm *spec.VirtualMachine) ([]corev1.Pod, error) {
	var out []corev1.Pod
	options := &client.ListOptions{
		Namespace: vm.Namespace, Limit: podPage,
		FieldSelector: fields.AndSelectors(
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
	}
	for {
		var page corev1.PodList
		if err := s.live.List(ctx, &page, options); err != nil {
			return nil, fmt.Errorf("look for pods that use the disks of %s/%s: %w", vm.Namespace, vm.Name, err)
		}
		for i := range page.Items {
			if pod := &page.Items[i]; reconcile.SharesDisks(vm, pod) {
				out = append(out, *pod)
			}
		}
		if page.Continue == "" {
			break
		}
		options.Continue = page.Continue
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// carryOut decides and executes. It returns the plan, or the action that failed
// if it was one.
func (m *machines) carryOut(ctx context.Context, o *observation, memory *machineMemory) (reconcile.Plan, reconcile.Action, error) {
	plan := reconcile.Decide(o.Snapshot)
	if plan.StartsPod() {
		turn, done, err := m.starts.begin(ctx, o)
		if err != nil {
			return plan, nil, err
		}
		defer done()
		ctx, plan = turn, reconcile.Decide(o.Snapshot)
	}
	for _, a := range plan.Actions {
		if err := m.executor.execute(ctx, o.stored, a, memory); err != nil {
			return plan, a, err
		}
		log.FromContext(ctx).V(1).Info("done", "action", a.Target().String())
	}
	return plan, nil, nil
}
