package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const testNode = "node-1"

// kubelet does in a namespace what the scheduler, a node, the volume controller
// and the runner would.
type kubelet struct {
	*test
	pods   cache.Store
	claims cache.Store
	queue  workqueue.TypedRateLimitingInterface[item]

	mu sync.Mutex
	// ends says how the runner of a machine ends: its termination message.
	ends map[string]string
	// silent machines have no runner that reports.
	silent map[string]bool
	// unreported are pods whose runner could not report yet that the guest executes.
	unreported map[types.UID]bool
	// changed machines have a runner that finds another content of a Secret than it
	// has given to the guest.
	changed map[string]bool
	// stubborn machines have a guest that does not react to its power button.
	stubborn map[string]bool
	// says is what the runner of a machine reports beside what all do.
	says map[string]map[string]any
	// resizes: pods are resized in place.
	resizes bool
	// deleted are claims that were deleted, doubled times at which a machine
	// had two pods.
	deleted, doubled []string
}

type item struct {
	pod  bool
	name string
}

// startKubelet starts one that ends with the test.
func (t *test) startKubelet() *kubelet { return t.startKubeletThat(false) }

// startKubeletThat starts one that resizes pods in place, or does not.
func (t *test) startKubeletThat(resizes bool) *kubelet {
	t.Helper()
	if resizes { // the API server looks whether the pod's node can
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *quantity("4"), corev1.ResourceMemory: *quantity("64Gi")}
		if _, err := t.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(t.kube, 0, informers.WithNamespace(t.namespace))
	k := &kubelet{
		test: t, ends: map[string]string{}, silent: map[string]bool{}, unreported: map[types.UID]bool{}, changed: map[string]bool{}, stubborn: map[string]bool{}, says: map[string]map[string]any{}, resizes: resizes,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](20*time.Millisecond, time.Second)),
	}
	add := func(pod bool, o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			k.queue.Add(item{pod, m.GetName()})
		}
	}
	pods, claims := factory.Core().V1().Pods().Informer(), factory.Core().V1().PersistentVolumeClaims().Informer()
	k.pods, k.claims = pods.GetStore(), claims.GetStore()
	for informer, pod := range map[cache.SharedIndexInformer]bool{pods: true, claims: false} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.check(); add(pod, o) },
			UpdateFunc: func(_, o any) { add(pod, o) },
			DeleteFunc: func(o any) {
				if m, ok := o.(*corev1.PersistentVolumeClaim); ok {
					k.mu.Lock()
					k.deleted = append(k.deleted, m.Name)
					k.mu.Unlock()
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				i, ended := k.queue.Get()
				if ended {
					return
				}
				if err := k.sync(ctx, i); err != nil && !apierrors.IsNotFound(err) {
					k.queue.AddRateLimited(i)
				} else {
					k.queue.Forget(i)
				}
				k.queue.Done(i)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		k.queue.ShutDown()
		workers.Wait()
		factory.Shutdown()
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.deleted) > 0 || len(k.doubled) > 0 {
			t.Errorf("deleted claims: %v; machines with two pods: %v", k.deleted, k.doubled)
		}
	})
	return k
}

// check looks for machines with two pods that may run.
func (k *kubelet) check() {
	of := map[string]int{}
	for _, o := range k.pods.List() {
		if pod := o.(*corev1.Pod); pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			of[pod.Labels[names.LabelInstance]]++
		}
	}
	for name, n := range of {
		if name != "" && n > 1 {
			k.mu.Lock()
			k.doubled = append(k.doubled, name)
			k.mu.Unlock()
		}
	}
}

// machineOf is the machine that a pod reports about; of pods without one it is nobody's.
func machineOf(pod *corev1.Pod) string { return cmp.Or(pod.Labels[names.LabelInstance], pod.Name) }

// end lets the runner of a machine end with a termination message.
func (k *kubelet) end(name, message string) {
	k.mu.Lock()
	k.ends[name] = message
	k.mu.Unlock()
	k.queue.Add(item{true, name})
}

func (k *kubelet) sync(ctx context.Context, i item) error {
	if !i.pod {
		o, found, err := k.claims.GetByKey(k.namespace + "/" + i.name)
		if err != nil || !found {
			return err
		}
		claim := o.(*corev1.PersistentVolumeClaim).DeepCopy()
		if claim.Status.Phase == corev1.ClaimBound {
			return nil
		}
		claim.Status.Phase = corev1.ClaimBound
		_, err = k.kube.CoreV1().PersistentVolumeClaims(k.namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	}
	o, found, err := k.pods.GetByKey(k.namespace + "/" + i.name)
	if err != nil || !found {
		return err
	}
	return k.syncPod(ctx, o.(*corev1.Pod).DeepCopy())
}

func (k *kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	pods := k.kube.CoreV1().Pods(k.namespace)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil && !ended && k.ignores(pod):
		return nil
	case pod.DeletionTimestamp != nil:
		if !ended {
			if err := k.report(ctx, machineOf(pod), false); err != nil {
				return err
			}
		}
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	case pod.Spec.NodeName == "":
		for _, claim := range objects.PodClaims(pod) {
			if _, found, err := k.claims.GetByKey(k.namespace + "/" + claim); !found {
				return cmp.Or(err, fmt.Errorf("pod %s waits for claim %s", pod.Name, claim))
			}
		}
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: testNode},
		}, metav1.CreateOptions{})
	case ended:
		return nil
	}
	k.mu.Lock()
	message, ends := k.ends[pod.Name]
	delete(k.ends, pod.Name)
	k.mu.Unlock()
	status := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Ready: true}
	now := metav1.Now()
	switch {
	case ends:
		pod.Status.Phase = corev1.PodFailed
		if message == "" {
			pod.Status.Phase = corev1.PodSucceeded
		}
		status.Ready = false
		status.State.Terminated = &corev1.ContainerStateTerminated{
			Message: message, StartedAt: metav1.NewTime(now.Add(-time.Hour)), FinishedAt: now, ExitCode: 1,
		}
	case pod.Status.Phase == corev1.PodRunning:
		if s := &pod.Status; k.resizes && s.ObservedGeneration < pod.Generation {
			s.ContainerStatuses[0].Resources, s.ObservedGeneration = &pod.Spec.Containers[0].Resources, pod.Generation
			_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			return err
		}
		k.mu.Lock()
		unreported := k.unreported[pod.UID]
		k.mu.Unlock()
		if !unreported {
			return nil
		}
		return k.started(ctx, pod)
	default:
		pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
		pod.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		if k.resizes {
			status.Resources, pod.Status.ObservedGeneration = &pod.Spec.Containers[0].Resources, pod.Generation
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		if ends {
			k.mu.Lock()
			k.ends[pod.Name] = message
			k.mu.Unlock()
		}
		return err
	}
	if ends {
		return nil
	}
	return k.started(ctx, pod)
}

// started reports that the guest of a pod executes. What the API server does not answer in
// time is reported again.
func (k *kubelet) started(ctx context.Context, pod *corev1.Pod) error {
	err := k.report(ctx, machineOf(pod), true)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unreported[pod.UID] = err != nil
	return err
}

// say has the runner of a machine report something beside what all do.
func (k *kubelet) say(name string, says map[string]any) {
	k.Helper()
	k.mu.Lock()
	k.says[name] = says
	k.mu.Unlock()
	if err := k.report(k.Context(), name, true); err != nil {
		k.Fatal(err)
	}
}

// ignores reports whether the guest of a pod lets it wait for its grace period, and
// the pod is not told to hurry.
func (k *kubelet) ignores(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stubborn[machineOf(pod)] && *pod.DeletionGracePeriodSeconds > objects.TerminationReserve
}

// report is what a runner says about its machine.
func (k *kubelet) report(ctx context.Context, name string, running bool) error {
	k.mu.Lock()
	silent, changed, says := k.silent[name], k.changed[name], k.says[name]
	k.mu.Unlock()
	if silent {
		return nil
	}
	status := map[string]any{"cpus": 0, "ram": "0"}
	state, reason := metav1.ConditionFalse, spec.ReasonVMStopped
	if running {
		status = map[string]any{"cpus": 1, "ram": "1Gi", "runnerVersion": "test"}
		maps.Copy(status, says)
		if changed {
			status["changedDocuments"] = []any{map[string]any{"name": spec.DocumentUserData, "missing": false}}
		}
		state, reason = metav1.ConditionTrue, spec.ReasonVMStarted
	}
	var conditions []any
	for _, t := range []string{spec.ConditionRunning} {
		conditions = append(conditions, map[string]any{
			"type": t, "status": string(state), "reason": reason, "message": "",
			"observedGeneration": 1, "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
		})
	}
	status["conditions"] = conditions
	data, err := json.Marshal(map[string]any{
		"apiVersion": spec.GroupVersion().String(), "kind": spec.KindVirtualMachine,
		"metadata": map[string]any{"name": name, "namespace": k.namespace}, "status": status,
	})
	if err != nil {
		return err
	}
	force := true
	_, err = k.vms.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: names.RunnerStatusManager, Force: &force}, "status")
	if err != nil && !apierrors.IsNotFound(err) { // the machine may be deleted already
		return fmt.Errorf("report about %s: %w", name, err)
	}
	return nil
}
