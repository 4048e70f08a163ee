package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	attachmentkind "github.com/vmop/sdk/vmop/reconcile/attachment"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// starts lets machines get their pods one by one, so that of several that share a claim each sees
// the pods of those before it: see [observation.Starts], which decides it and explains why. Calls
// do not block: a machine that has to wait is requeued.
type starts struct {
	live, cache client.Reader
	now         func() time.Time
	// watched is since when the pods of others that wait are watched, zero if they are not.
	watched func() time.Time

	mu sync.Mutex
	in map[string]*observation.Starts
	// pruned is when what cannot matter any more was last dropped.
	pruned time.Time
}

// pruneInterval is how often that is dropped while no machine starts.
const pruneInterval = time.Minute

func newStarts(live, cache client.Reader, now, watched func() time.Time) *starts {
	return &starts{live: live, cache: cache, now: now, watched: watched, in: map[string]*observation.Starts{}}
}

// of must be called with the lock held.
func (s *starts) of(namespace string) *observation.Starts {
	if s.in[namespace] == nil {
		s.in[namespace] = &observation.Starts{}
	}
	return s.in[namespace]
}

// prune must be called with the lock held.
func (s *starts) prune(now time.Time) {
	s.pruned = now
	for n, in := range s.in {
		if in.Idle(now) {
			delete(s.in, n)
		}
	}
}

// recorded drops what cannot matter any more after something was recorded without a start: there
// may never be one. It must be called with the lock held.
func (s *starts) recorded() {
	if now := s.now(); now.Sub(s.pruned) > pruneInterval {
		s.prune(now)
	}
}

// turn is a machine's permission to start.
type turn struct {
	starts             *starts
	namespace, machine string
	// others are the pods that the caches may not show; unshown: some of them share disks and are
	// watched, so that their end may have been reported already.
	others  []*corev1.Pod
	unshown bool
	// made is the machine's pod once it was created; unanswered: it may have been created.
	made       *corev1.Pod
	unanswered bool
}

// begin asks for a machine's turn to carry out a plan, which ends with the call of end. It is nil if
// the machine has to be requeued.
func (s *starts) begin(ctx context.Context, vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment, plan reconcile.Plan, asked time.Time) (*turn, error) {
	start := observation.Start{
		Machine: vm.Name, Claims: machinekind.UsedClaims(vm, attachments), Asked: asked,
		Refers: len(vm.Spec.BlockDeviceRefs) > 0 || slices.ContainsFunc(attachments, func(a spec.VirtualMachineBlockDeviceAttachment) bool { return attachmentkind.MayMount(&a) }),
	}
	for _, a := range plan.Actions {
		if pod, is := created(a); is {
			start.Mounts = objects.PodClaims(pod)
		}
	}
	for i := range vm.Spec.VM.Disks {
		start.Refers = start.Refers || vm.Spec.VM.Disks[i].PersistentVolumeClaim != nil
	}
	return s.turn(ctx, vm.Namespace, start)
}

func (s *starts) turn(ctx context.Context, namespace string, start observation.Start) (*turn, error) {
	start.Watched = s.watched()
	step, t, err := s.ask(ctx, namespace, start)
	if err != nil || step == observation.Wait || step == observation.Go {
		return t, err
	}
	if err := s.look(ctx, namespace, step == observation.LookAtAll); err != nil {
		return nil, fmt.Errorf("look for pods that use the disks of %s/%s: %w", namespace, start.Machine, err)
	}
	step, t, err = s.ask(ctx, namespace, start)
	if step == observation.LookAround || step == observation.LookAtAll {
		s.looked(namespace, nil) // a doubt arose meanwhile; once more
	}
	return t, err
}

// ask asks whether a machine may start. What the caches show is recorded first, so that a pod that
// is missing from others is in the caches when they are read next.
func (s *starts) ask(ctx context.Context, namespace string, start observation.Start) (observation.Turn, *turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.prune(now)
	in := s.of(namespace)
	for _, m := range in.Made() {
		if shows, err := s.shows(ctx, namespace, m); err != nil {
			return observation.Wait, nil, err
		} else if shows {
			in.Shown(m.UID)
		}
	}
	step, look := in.Begin(now, start)
	if step != observation.Go {
		return step, nil, nil
	}
	t := &turn{starts: s, namespace: namespace, machine: start.Machine}
	for i := range look.Pods {
		t.others = append(t.others, look.Pods[i].Object)
	}
	for _, m := range in.Made() {
		t.others = append(t.others, m.Object)
	}
	return step, t, nil
}

// shows reports whether the cache shows a pod, or a later one of its name.
func (s *starts) shows(ctx context.Context, namespace string, m observation.Made) (bool, error) {
	pod := &corev1.Pod{}
	found, err := get(ctx, s.cache, types.NamespacedName{Namespace: namespace, Name: m.Name}, pod)
	if !found {
		return false, err
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, m.Version)
	return err == nil && order >= 0, nil
}

// look reads from the API server the pods that have not ended: all, or those that no cache shows.
func (s *starts) look(ctx context.Context, namespace string, all bool) error {
	l := &observation.Look{Whole: all, Began: s.now()}
	options := &client.ListOptions{
		Namespace: namespace, Limit: podPage,
		FieldSelector: fields.AndSelectors(
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
	}
	if !all {
		options.LabelSelector = unwatchedPods()
	}
	watched := labels.SelectorFromSet(podLabels())
	for {
		var page corev1.PodList
		if err := s.live.List(ctx, &page, options); err != nil {
			s.looked(namespace, nil)
			return err
		}
		for i := range page.Items {
			if pod := &page.Items[i]; len(objects.PodClaims(pod)) > 0 {
				l.Pods = append(l.Pods, podOf(machinekind.CondensePod(pod), watched.Matches(labels.Set(pod.Labels))))
			}
		}
		if page.Continue == "" {
			break
		}
		options.Continue = page.Continue
	}
	s.looked(namespace, l)
	return nil
}

func unwatchedPods() labels.Selector {
	out := labels.NewSelector()
	for key, value := range podLabels() {
		// There must be one label, or else "not both" could not be expressed.
		if r, err := labels.NewRequirement(key, selection.NotEquals, []string{value}); err == nil {
			out = out.Add(*r)
		}
	}
	return out
}

func podOf(pod *corev1.Pod, watched bool) observation.Pod {
	return observation.Pod{
		Name: pod.Name, UID: string(pod.UID), Version: pod.ResourceVersion,
		Claims: objects.PodClaims(pod), Watched: watched, Object: pod,
	}
}

func (s *starts) saw(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.in[pod.Namespace]; in != nil {
		in.Shown(string(pod.UID))
	}
}

// claimCreated notes a claim that the API server created after it was asked to.
func (s *starts) claimCreated(namespace, claim string, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(namespace).Created(claim, asked)
	s.recorded()
}

func (s *starts) awaits(pod *corev1.Pod) {
	claims := objects.PodClaims(pod)
	if len(claims) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(pod.Namespace).Awaits(string(pod.UID), claims)
}

func (s *starts) awaitsNoMore(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.in[pod.Namespace]; in != nil {
		in.AwaitsNoMore(s.now(), string(pod.UID))
	}
	s.recorded()
}

// doubt forgets what another leader may have made untrue.
func (s *starts) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.in {
		in.Doubt()
	}
}

func (s *starts) looked(namespace string, l *observation.Look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.in[namespace]; in != nil {
		in.Looked(l)
	}
}

func (t *turn) answered(a reconcile.Action, answer client.Object, err error) {
	if pod, is := created(a); is {
		t.made, _ = answer.(*corev1.Pod)
		t.unanswered = pod != nil && err != nil && !observation.Answered(err)
	}
}

func (t *turn) end() {
	t.starts.mu.Lock()
	defer t.starts.mu.Unlock()
	var pod *observation.Pod
	if t.made != nil {
		p := podOf(machinekind.CondensePod(t.made), true)
		pod = &p
	}
	if in := t.starts.in[t.namespace]; in != nil {
		in.End(t.starts.now(), t.machine, pod, !t.unanswered)
	}
}

func created(a reconcile.Action) (*corev1.Pod, bool) {
	c, is := a.(reconcile.Create)
	if !is {
		return nil, false
	}
	pod, is := c.Object.(*corev1.Pod)
	return pod, is
}

func makesClaim(a reconcile.Action) bool {
	c, is := a.(reconcile.Create)
	if !is {
		return false
	}
	_, is = c.Object.(*corev1.PersistentVolumeClaim)
	return is
}
