package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

type key struct{ namespace, name string }

// standIn binds claims, runs pods and reports as their runners do.
type standIn struct {
	kube   kubernetes.Interface
	vms    dynamic.NamespaceableResourceInterface
	pods   cache.Store
	claims cache.Store
	// queues has three, of claims, of pods and of pods that end, for each kind of namespace: nobody
	// who binds volumes keeps a node waiting, and those measured beside a busy namespace do not wait
	// for the stand-in.
	queues [6]workqueue.TypedRateLimitingInterface[work]

	mu sync.Mutex
	// pod and runs are when a machine's first pod was seen and when it ran.
	pod, runs map[key]time.Time
	uids      map[key]map[types.UID]bool
}

type work struct {
	pod bool
	key
}

// workersOf is how much is done at once of a kind: more than the operator does of machines, which so
// does not wait for it, and runners that report their ends do not wait for each other.
var workersOf = [3]int{16, 16, 64}

func newStandIn(kube kubernetes.Interface, vms dynamic.NamespaceableResourceInterface) *standIn {
	return &standIn{kube: kube, vms: vms, pod: map[key]time.Time{}, runs: map[key]time.Time{}, uids: map[key]map[types.UID]bool{}}
}

// start works until the context ends or stop is called. Restarted after an outage, it resumes at
// once, like the kubelets of a small cluster.
func (s *standIn) start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	stop = func() { cancel(); workers.Wait() }
	factory := informers.NewSharedInformerFactory(s.kube, 0)
	pods, claims := factory.Core().V1().Pods().Informer(), factory.Core().V1().PersistentVolumeClaims().Informer()
	s.pods, s.claims = pods.GetStore(), claims.GetStore()
	for i := range s.queues {
		s.queues[i] = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[work](20*time.Millisecond, 2*time.Second))
	}
	for informer, pod := range map[cache.SharedIndexInformer]bool{pods: true, claims: false} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.add(pod, o) },
			UpdateFunc: func(_, o any) { s.add(pod, o) },
		}); err != nil {
			cancel()
			return nil, err
		}
	}
	workers.Go(func() { <-ctx.Done(); factory.Shutdown() })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for i, q := range s.queues {
		for range workersOf[i%len(workersOf)] {
			workers.Go(func() { s.work(ctx, q) })
		}
	}
	return stop, nil
}

func (s *standIn) add(pod bool, o any) {
	m, ok := o.(metav1.Object)
	if !ok {
		return
	}
	k := key{m.GetNamespace(), m.GetName()}
	if pod {
		s.mu.Lock()
		if s.pod[k].IsZero() {
			s.pod[k] = time.Now()
		}
		if s.uids[k] == nil {
			s.uids[k] = map[types.UID]bool{}
		}
		s.uids[k][m.GetUID()] = true
		s.mu.Unlock()
	}
	q := 0
	if strings.HasPrefix(k.namespace, neighbours) {
		q = len(workersOf)
	}
	if pod {
		q++
		if m.GetDeletionTimestamp() != nil {
			q++
		}
	}
	s.queues[q].Add(work{pod, k})
}

func (s *standIn) work(ctx context.Context, q workqueue.TypedRateLimitingInterface[work]) {
	context.AfterFunc(ctx, q.ShutDown)
	for {
		w, end := q.Get()
		if end {
			return
		}
		if err := s.do(ctx, w); err != nil && !apierrors.IsNotFound(err) {
			q.AddRateLimited(w)
		} else {
			q.Forget(w)
		}
		q.Done(w)
	}
}

func (s *standIn) do(ctx context.Context, w work) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	name := w.namespace + "/" + w.name
	if !w.pod {
		o, found, err := s.claims.GetByKey(name)
		if err != nil || !found {
			return err
		}
		claim := o.(*corev1.PersistentVolumeClaim).DeepCopy()
		if claim.Status.Phase == corev1.ClaimBound {
			return nil
		}
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
		_, err = s.kube.CoreV1().PersistentVolumeClaims(w.namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	}
	o, found, err := s.pods.GetByKey(name)
	if err != nil || !found {
		return err
	}
	return s.doPod(ctx, w.key, o.(*corev1.Pod).DeepCopy())
}

func (s *standIn) doPod(ctx context.Context, k key, pod *corev1.Pod) error {
	pods := s.kube.CoreV1().Pods(k.namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		if s.reported(k) { // a runner reports its end once
			if err := s.report(ctx, k, false); err != nil {
				return err
			}
			s.mu.Lock()
			delete(s.runs, k)
			s.mu.Unlock()
		}
		return pods.Delete(ctx, k.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: k.name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		}, metav1.CreateOptions{})
	case pod.Status.Phase != corev1.PodRunning:
		pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if s.reported(k) {
		return nil
	}
	err := s.report(ctx, k, true)
	if err == nil {
		s.mu.Lock()
		s.runs[k] = time.Now()
		s.mu.Unlock()
	}
	return err
}

// again repeats the writes for the creation of a machine, with contents that have no effect.
func (s *standIn) again(ctx context.Context, k key) error {
	o, found, err := s.pods.GetByKey(k.namespace + "/" + k.name)
	if err != nil || !found {
		return err
	}
	pod := o.(*corev1.Pod).DeepCopy()
	for i := range pod.Spec.Volumes {
		of := pod.Spec.Volumes[i].PersistentVolumeClaim
		if of == nil {
			continue
		}
		o, found, err := s.claims.GetByKey(k.namespace + "/" + of.ClaimName)
		if err != nil || !found {
			return err
		}
		claim := o.(*corev1.PersistentVolumeClaim).DeepCopy()
		claim.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		if _, err := s.kube.CoreV1().PersistentVolumeClaims(k.namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for i := range 2 {
		pod.Status.Message = fmt.Sprint("update ", i+1)
		if pod, err = s.kube.CoreV1().Pods(k.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return s.report(ctx, k, true)
}

// reported reports whether the machine's runner has reported that it runs, and not its end.
func (s *standIn) reported(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.runs[k].IsZero()
}

func (s *standIn) report(ctx context.Context, k key, running bool) error {
	status, state, reason := map[string]any{"cpus": 0, "ram": "0"}, metav1.ConditionFalse, spec.ReasonVMStopped
	if running {
		status, state, reason = map[string]any{"cpus": 1, "ram": "1Gi", "runnerVersion": "test"}, metav1.ConditionTrue, spec.ReasonVMStarted
	}
	var conditions []any
	for _, t := range spec.ConditionTypes() {
		of := metav1.ConditionFalse
		if t == spec.ConditionRunning {
			of = state
		}
		conditions = append(conditions, map[string]any{
			"type": t, "status": string(of), "reason": reason, "message": "", "observedGeneration": 1, // that of its configuration
			"lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
		})
	}
	status["conditions"] = conditions
	data, err := json.Marshal(map[string]any{
		"apiVersion": spec.GroupVersion().String(), "kind": spec.KindVirtualMachine,
		"metadata": map[string]any{"name": k.name, "namespace": k.namespace}, "status": status,
	})
	if err != nil {
		return err
	}
	_, err = s.vms.Namespace(k.namespace).Patch(ctx, k.name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: names.RunnerStatusManager, Force: new(true)}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("report about %s/%s: %w", k.namespace, k.name, err)
	}
	return nil
}

func (s *standIn) having(of map[key]time.Time, keys []key) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if !of[k].IsZero() {
			n++
		}
	}
	return n
}

func (s *standIn) twice(keys []key) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if len(s.uids[k]) > 1 {
			n++
		}
	}
	return n
}
