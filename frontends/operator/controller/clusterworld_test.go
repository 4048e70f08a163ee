package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	operationkind "github.com/vmop/sdk/vmop/reconcile/operation"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// clusterWorld is a model of a cluster with the machines, pools, classes and operations
// of two namespaces, some of which share a disk, the users of the pools, and the operator
// with its engines, as it is but for its watches: what they show lags behind, each kind's
// on its own. Everything that happens is drawn. The worlds of the core have one machine, and more that happens
// to it; this one is about what the operator adds: which version of an object is
// believed, what is a refusal, what makes a wait, and whose turn it is. And it has all
// of what happens at once that those have one by one: run policies, operations, labels,
// classes, Secrets that come late, guests that power themselves off, reset or crash.
type clusterWorld struct {
	api    *modelAPI
	choose func(what string, n int) int
	now    time.Time
	ctx    context.Context

	cache, live *modelReader
	machines    *engine[machinekind.Snapshot]
	pools       *engine[poolkind.Snapshot]
	operations  *engine[operationkind.Snapshot]
	find        finder
	starts      *starts
	// mutant is what is wrong with the operator; nil: nothing is.
	mutant *clusterMutant
	// due is when subjects are looked at.
	due map[subjectKey]time.Time
	// blind: pods of others that wait are not watched.
	blind bool
	// serving is the namespace of the request that is served, kind: nothing goes wrong.
	serving string
	kind    bool

	guests map[types.UID]*clusterGuest
	asked  int // operations
	// members are the machines of each namespace that were made for a pool.
	members map[string][]string
	// upsets counts what may decide whether a machine runs; last is the last request that
	// somebody made of it.
	upsets map[modelKey]int
	last   map[modelKey]lastRequest
	ends   map[modelKey]lastEnd
	// rounds are those after which the world has to rest, once nothing happens.
	rounds int
	log    []string
}

// subjectKey is a request of one of the engines.
type subjectKey struct {
	kind string
	types.NamespacedName
}

func (k subjectKey) String() string { return k.kind + " of " + k.NamespacedName.String() }

// clusterGuest is a guest that executes.
type clusterGuest struct {
	pod    modelKey
	of     types.UID // the machine
	claims []string
	told   bool
	// user is at the console, or was there last.
	user      string
	connected bool
}

// killedOperator ends what an operator does.
type killedOperator struct{}

const (
	sharedDisk    = "shared"
	longestLag    = 20 * time.Second
	settledAfter  = 40 * time.Minute // no operation takes longer
	clusterRounds = 2000
)

// violated ends what happens: one of the [clusterPromises] is broken.
func (w *clusterWorld) violated(promise, format string, args ...any) {
	panic(promises.Violation{Promise: promise, Detail: fmt.Sprintf(format, args...)})
}

func (w *clusterWorld) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func newClusterWorld(ctx context.Context, choose func(string, int) int, mutant *clusterMutant) *clusterWorld {
	w := &clusterWorld{
		choose: choose, mutant: mutant, rounds: clusterRounds, ctx: log.IntoContext(ctx, logr.Discard()), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), guests: map[types.UID]*clusterGuest{}, members: map[string][]string{},
		upsets: map[modelKey]int{}, last: map[modelKey]lastRequest{}, ends: map[modelKey]lastEnd{},
	}
	w.api = &modelAPI{now: func() time.Time { return w.now }, objects: map[modelKey][]modelVersion{}, owners: map[types.UID]map[string]map[string]bool{}}
	w.api.taken = w.checkTaken
	w.api.released = func(k modelKey, uid types.UID) {
		for _, g := range w.guests {
			if g.pod == (modelKey{kindPod, k.namespace, k.name}) && g.of == uid {
				w.violated("a machine is seen until its guest has ended", "%s is not", k)
			}
		}
	}
	for _, namespace := range []string{"apps", "lab"} {
		w.api.put(modelKey{kindClaim, namespace, sharedDisk}, content(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sharedDisk},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}))
		for _, name := range []string{"db", "web"} {
			w.createMachine(modelKey{spec.KindVirtualMachine, namespace, name})
		}
	}
	for _, k := range clusterPools {
		w.createPool(k)
		for i := range w.choose("size", 3) {
			w.createMember(k, i)
		}
	}
	w.start()
	return w
}

// start is an operator that starts, and knows what it reads.
func (w *clusterWorld) start() {
	w.note("the operator starts")
	now := func() time.Time { return w.now }
	w.cache = &modelReader{api: w.api, seen: map[string]int64{}, indexes: map[[2]string]client.IndexerFunc{}}
	w.live = &modelReader{api: w.api}
	for kind := range kindsOf(registrations()) {
		w.cache.seen[kind] = w.api.serial
	}
	if err := addIndexes(w.ctx, w.cache); err != nil {
		panic(err)
	}
	r := &reader{
		cache: w.cache, live: w.live, now: now, kinds: kindsOf(registrations()), prepared: &preparations{at: map[string]time.Time{}, now: now},
		steady: func() time.Time { return w.now.Add(-time.Hour) },
	}
	writes, err := newWriteCounter(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	ends, err := newEndCounter(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	operated, err := newOperationCounter(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	x := &executor{client: &modelClient{api: w.api, before: w.fault}, writes: writes, now: now, leads: func() bool { return true }, together: w.together}
	began := w.now
	w.starts = newStarts(w.live, w.cache, now, func() time.Time { return began })
	if backup := w.api.top(backupPod); backup != nil {
		w.awaited(into(backup, &corev1.Pod{}))
	}
	k := &machines{reader: r, ends: ends, starts: w.starts, settings: objects.Settings{Version: "1", RunnerImage: "runner"}}
	w.machines = &engine[machinekind.Snapshot]{kind: sabotaged(k.kind(), w.mutant.ofMachines()), reader: r, events: w, executor: x}
	w.pools = &engine[poolkind.Snapshot]{kind: sabotaged((&pools{told: map[types.UID]string{}}).kind(), w.mutant.ofPools()), reader: r, events: w, executor: x}
	w.operations = &engine[operationkind.Snapshot]{kind: sabotaged((&operations{ended: operated}).kind(), w.mutant.ofOperations()), reader: r, events: w, executor: x}
	w.find = finder{cache: w.cache, starts: k.starts}
	w.due = map[subjectKey]time.Time{}
	for _, kind := range w.kinds() {
		for _, k := range w.api.keys(kind) {
			if o := w.cache.object(k); o != nil {
				w.wake(o)
			}
		}
	}
}

// Eventf implements [events.EventRecorder].
func (w *clusterWorld) Eventf(about, _ runtime.Object, _, reason, _, note string, args ...any) {
	w.note("event of %T: %s: %s", about, reason, fmt.Sprintf(note, args...))
}

// want has a subject looked at, unless it is sooner anyway.
func (w *clusterWorld) want(k subjectKey, after time.Duration) {
	if at, there := w.due[k]; !there || w.now.Add(after).Before(at) {
		w.due[k] = w.now.Add(after)
	}
}

// fault says what becomes of a write.
func (w *clusterWorld) fault(verb string, k modelKey) (error, bool) {
	w.note("the operator wants to %s %s", verb, k)
	if k.namespace != w.serving {
		w.violated("a request writes in its namespace", "one of %s writes %s", w.serving, k)
	}
	if verb == "create" && k.kind == kindPod {
		w.checkProvided(k)
	}
	if w.kind {
		return nil, false
	}
	switch w.choose("fault", 20) {
	case 0:
		w.note("it is forbidden")
		return apierrors.NewForbidden(resourceOf(k), k.name, errors.New("exceeded quota: pods")), false
	case 1:
		w.note("there is no answer")
		return context.DeadlineExceeded, true
	case 2:
		w.note("it is lost")
		return context.DeadlineExceeded, false
	case 3:
		panic(killedOperator{})
	}
	return nil, false
}

// together calls functions in a drawn order.
func (w *clusterWorld) together(tasks []func()) {
	for tasks = slices.Clone(tasks); len(tasks) > 0; {
		i := 0
		if len(tasks) > 1 && !w.kind {
			i = w.choose("next", len(tasks))
		}
		tasks[i]()
		tasks = slices.Delete(tasks, i, i+1)
	}
}

// serve has an engine look at a subject.
func (w *clusterWorld) serve(k subjectKey) {
	delete(w.due, k)
	defer func() {
		switch v := recover().(type) {
		case nil:
		case killedOperator:
			w.note("the operator is killed")
			w.start()
		default:
			panic(v)
		}
	}()
	w.serving = k.Namespace
	var result ctrl.Result
	var err error
	switch request := (ctrl.Request{NamespacedName: k.NamespacedName}); k.kind {
	case spec.KindVirtualMachine:
		result, err = w.machines.Reconcile(w.ctx, request)
	case spec.KindVMPool:
		result, err = w.pools.Reconcile(w.ctx, request)
	case spec.KindOperation:
		result, err = w.operations.Reconcile(w.ctx, request)
	}
	switch {
	case err != nil:
		w.note("%s: %v", k, err)
		w.want(k, time.Second)
	case result.RequeueAfter > 0:
		w.want(k, result.RequeueAfter)
	}
}

// ready are the subjects that are to be looked at, in an order of their own.
func (w *clusterWorld) ready() []subjectKey {
	var out []subjectKey
	for k, at := range w.due {
		if !at.After(w.now) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b subjectKey) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// shows lets the watch of a kind show what has happened up to a serial number.
func (w *clusterWorld) shows(kind string, upto int64) {
	type change struct {
		serial int64
		k      modelKey
	}
	var changes []change
	for k, versions := range w.api.objects {
		for _, v := range versions {
			if k.kind == kind && v.serial > w.cache.seen[kind] && v.serial <= upto {
				changes = append(changes, change{v.serial, k})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return int(a.serial - b.serial) })
	for _, c := range changes {
		before := w.cache.object(c.k)
		w.cache.seen[kind] = c.serial
		after := w.cache.object(c.k)
		for _, o := range []client.Object{before, after} {
			if o != nil {
				w.wake(o)
			}
		}
	}
	w.cache.seen[kind] = max(w.cache.seen[kind], upto)
}

// wake finds who is to be looked at because of an object, as the controllers do.
func (w *clusterWorld) wake(o client.Object) {
	var requests []ctrl.Request
	switch o := o.(type) {
	case *machine:
		requests = []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		w.want(subjectKey{spec.KindOperation, client.ObjectKeyFromObject(o)}, 0)
		if len(o.pools) > 0 || o.pool != "" {
			w.want(subjectKey{spec.KindVMPool, types.NamespacedName{Namespace: o.Namespace}}, sizesDelay)
		}
	case *pool:
		requests = w.find.machinesOfPool(w.ctx, o)
		w.want(subjectKey{spec.KindVMPool, types.NamespacedName{Namespace: o.Namespace}}, 0)
	case *storedOperation:
		for _, name := range operatedOn(o) {
			w.want(subjectKey{spec.KindOperation, types.NamespacedName{Namespace: o.Namespace, Name: name}}, 0)
		}
	case *corev1.Pod:
		requests = w.find.machinesOfPod(w.ctx, o)
		w.want(subjectKey{spec.KindOperation, client.ObjectKeyFromObject(o)}, 0)
	case *corev1.PersistentVolumeClaim:
		requests = w.find.machinesOfClaim(w.ctx, o)
	case *storedClass:
		requests = w.find.machinesOfClass(w.ctx, o)
	default:
		requests = w.find.machine(w.ctx, o)
	}
	for _, r := range requests {
		w.want(subjectKey{spec.KindVirtualMachine, r.NamespacedName}, 0)
	}
}

// kinds are those that are watched, in order.
func (w *clusterWorld) kinds() []string { return slices.Sorted(maps.Keys(w.cache.seen)) }

func (w *clusterWorld) showsAll() {
	for _, kind := range w.kinds() {
		w.shows(kind, w.api.serial)
	}
}

// pass lets time go by. No watch lags behind for longer than the lag.
func (w *clusterWorld) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, kind := range w.kinds() {
		var upto int64
		for k, versions := range w.api.objects {
			for _, v := range versions {
				if k.kind == kind && v.serial > w.cache.seen[kind] && w.now.Sub(v.at) > longestLag {
					upto = max(upto, v.serial)
				}
			}
		}
		if upto > 0 {
			w.shows(kind, upto)
		}
	}
}

// step is one thing that happens.
func (w *clusterWorld) step() {
	switch w.choose("event", 19) {
	case 0, 1, 2, 3:
		if ready := w.ready(); len(ready) > 0 {
			w.serve(ready[w.choose("subject", len(ready))])
		}
	case 4, 5, 6:
		kind := w.kinds()[w.choose("kind", len(w.cache.seen))]
		behind := int(w.api.serial - w.cache.seen[kind])
		if behind > 0 {
			w.shows(kind, w.cache.seen[kind]+1+int64(w.choose("more", behind)))
		}
	case 7:
		w.showsAll()
	case 8, 9:
		if pods := w.api.keys(kindPod); len(pods) > 0 {
			w.tend(pods[w.choose("pod", len(pods))], w.choose("kubelet", 8))
		}
	case 10:
		w.controllers()
	case 11:
		w.pass([]time.Duration{time.Second, 6 * time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 4)])
	case 12, 16, 17:
		w.person()
	case 13:
		switch w.choose("really", 4) {
		case 0:
			w.start()
		case 1:
			w.stranger()
		}
	case 14, 15:
		w.user()
	case 18:
		for range 1 + w.choose("rounds", 4) {
			w.round()
			w.pass(time.Second)
		}
	}
}

// tend moves a pod on. What is chosen are hindrances and ends; 0 is the good way.
func (w *clusterWorld) tend(k modelKey, how int) {
	pod := into(w.api.top(k), &corev1.Pod{})
	g := w.guests[pod.UID]
	switch {
	case pod.Spec.NodeName == "":
		for _, claim := range objects.PodClaims(pod) {
			c := w.api.top(modelKey{kindClaim, k.namespace, claim})
			if c == nil || into(c, &corev1.PersistentVolumeClaim{}).Status.Phase != corev1.ClaimBound {
				return
			}
		}
		pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodPending
	case pod.DeletionTimestamp != nil:
		delete(w.guests, pod.UID)
		w.starts.awaitsNoMore(pod)
		w.note("%s is gone", k)
		w.api.put(k, nil)
		return
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return
	case g == nil:
		w.execute(k, pod)
	case 1 <= how && how <= 3:
		delete(w.guests, pod.UID)
		cause, phase := []runnerconfig.Cause{runnerconfig.CauseGuestShutdown, runnerconfig.CauseQEMUFailure, runnerconfig.CauseGuestReset}[how-1], corev1.PodSucceeded
		if cause.Failure() {
			phase = corev1.PodFailed
		}
		lost := w.choose("pod of an end lost", 4) == 1
		w.ended(pod, cause, lost)
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Message: string(runnerconfig.Outcome{Cause: cause, Message: "it ended"}.TerminationMessage()), FinishedAt: metav1.NewTime(w.now),
		}}}}
		w.note("%s ends: %s", k, cause)
		if lost {
			w.note("%s is lost", k)
			w.api.put(k, nil)
			return
		}
	default:
		w.runnerReports(pod, g)
		return
	}
	w.api.put(k, content(pod))
}

// execute starts a guest, which must have its disks to itself.
func (w *clusterWorld) execute(k modelKey, pod *corev1.Pod) {
	g := &clusterGuest{pod: k, claims: objects.PodClaims(pod)}
	for _, other := range w.guests {
		for _, claim := range g.claims {
			if other.pod.namespace == k.namespace && slices.Contains(other.claims, claim) {
				w.violated("a disk has one machine", "%s is used by %s and %s", claim, other.pod, k)
			}
		}
	}
	if len(pod.OwnerReferences) > 0 {
		g.of = pod.OwnerReferences[0].UID
	}
	w.guests[pod.UID] = g
	w.starts.awaitsNoMore(pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}}}
	w.note("%s runs", k)
}

// runnerReports is the report of a runner.
func (w *clusterWorld) runnerReports(pod *corev1.Pod, g *clusterGuest) {
	k := modelKey{spec.KindVirtualMachine, pod.Namespace, pod.Name}
	o := w.api.top(k)
	if o == nil || g.told || len(pod.OwnerReferences) == 0 || !is(o, pod.OwnerReferences[0].UID, "") {
		return
	}
	report := map[string]any{"cpus": int64(1), "ram": "1Gi", "runnerVersion": "1", "conditions": w.runnerConditions(k, g)}
	if g.user != "" {
		report["consoleUser"] = g.user
	}
	w.api.report(k, names.RunnerStatusManager, report)
	g.told = true
	w.note("the runner of %s reports", k)
}

// ended is the end of a guest, which its runner reports, if that gets through. What is
// known of it decides whether the machine goes on.
func (w *clusterWorld) ended(pod *corev1.Pod, cause runnerconfig.Cause, lost bool) {
	k := modelKey{spec.KindVirtualMachine, pod.Namespace, pod.Name}
	w.upsets[k]++
	o := w.api.top(k)
	if o == nil || len(pod.OwnerReferences) == 0 || !is(o, pod.OwnerReferences[0].UID, "") {
		return
	}
	reported := w.choose("end reported", 3) > 0
	w.endsByPolicy(k, pod, cause, !lost || reported, lost)
	if reported {
		w.api.report(k, names.RunnerStatusManager, map[string]any{
			"cpus": int64(0), "ram": "0", "conditions": w.runnerConditions(k, nil),
			"runnerEnd": map[string]any{"cause": string(cause), "message": "it ended"},
		})
	}
}

// runnerConditions are those that a runner reports of its guest; nil: it has ended.
func (w *clusterWorld) runnerConditions(k modelKey, g *clusterGuest) []any {
	had := into(w.api.top(k), &spec.VirtualMachine{}).Status.Conditions
	var out []any
	for _, t := range spec.ConditionTypes() {
		status, reason, since := "False", spec.ReasonVMStopped, w.now
		if g != nil {
			reason = spec.ReasonVMStarted
			if t == spec.ConditionRunning || t == spec.ConditionConsoleConnected && g.connected {
				status = "True"
			}
		}
		if c := spec.FindCondition(had, t); c != nil && string(c.Status) == status {
			since = c.LastTransitionTime.Time
		}
		out = append(out, map[string]any{"type": t, "status": status, "reason": reason, "message": "it said so", "lastTransitionTime": since.UTC().Format(time.RFC3339)})
	}
	return out
}

// controllers bind volumes and delete what has no owner any more.
func (w *clusterWorld) controllers() {
	for _, k := range w.api.keys(kindClaim) {
		if claim := into(w.api.top(k), &corev1.PersistentVolumeClaim{}); claim.Status.Phase != corev1.ClaimBound {
			claim.Status.Phase = corev1.ClaimBound
			w.api.put(k, content(claim))
		}
	}
	for _, kind := range []string{kindConfigMap, kindPod, kindService} {
		for _, k := range w.api.keys(kind) {
			u := unstructured.Unstructured{Object: w.api.top(k)}
			for _, owner := range u.GetOwnerReferences() {
				if o := w.api.top(modelKey{spec.KindVirtualMachine, k.namespace, owner.Name}); o == nil || !is(o, owner.UID, "") {
					w.api.remove(k, 30)
				}
			}
		}
	}
}

// round is a moment in which everybody does what is to be done.
func (w *clusterWorld) round() {
	w.showsAll()
	for _, k := range w.ready() {
		w.serve(k)
	}
	w.controllers()
	for _, k := range w.api.keys(kindPod) {
		if w.api.top(k) != nil {
			w.tend(k, 0)
		}
	}
}

// settle lets the world be kind until nothing is written any more, and checks that then
// all is as wanted.
func (w *clusterWorld) settle() {
	w.kind = true
	if w.api.top(backupPod) != nil {
		w.stranger()
	}
	w.provide()
	quiet := w.now
	for range w.rounds {
		serial := w.api.serial
		w.round()
		if w.api.serial != serial {
			quiet = w.now
			w.pass(100 * time.Millisecond) // watches show it soon
			continue
		}
		if w.now.Sub(quiet) > settledAfter {
			w.checkSettled()
			return
		}
		next := quiet.Add(settledAfter + time.Second)
		for _, at := range w.due {
			if at.Before(next) {
				next = at
			}
		}
		w.pass(max(next.Sub(w.now), 100*time.Millisecond))
	}
	w.violated("the world comes to rest", "something is written after %d rounds", w.rounds)
}

// checkSettled is what must hold when nothing happens any more.
func (w *clusterWorld) checkSettled() {
	for _, namespace := range []string{"apps", "lab"} {
		var sharing, having []string
		for _, k := range w.api.keys(spec.KindVirtualMachine) {
			if k.namespace != namespace {
				continue
			}
			vm := into(w.api.top(k), &spec.VirtualMachine{})
			if vm.DeletionTimestamp != nil {
				w.violated("a machine that is deleted goes", "%s is there", k)
			}
			runs := false
			for _, g := range w.guests {
				runs = runs || g.pod == modelKey{kindPod, k.namespace, k.name}
			}
			wanted := vm.ShouldRun()
			w.checkPower(k, vm)
			if runs {
				w.checkRunning(k, vm)
			}
			shares := slices.Contains(objects.ClaimNames(vm), sharedDisk)
			switch {
			case wanted && shares:
				sharing = append(sharing, k.name)
				if runs {
					having = append(having, k.name)
				}
			case wanted != runs:
				w.violated("what is wanted is reached", "%s runs: %v", k, runs)
			}
			if running := spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionRunning); running != runs {
				w.violated("the status is true", "%s runs: %v, and says %v", k, runs, vm.Status.Conditions)
			}
			if vm.Status.ObservedGeneration != vm.Generation {
				w.violated("the status names the generation it is about", "%s: %d, not %d", k, vm.Status.ObservedGeneration, vm.Generation)
			}
		}
		if len(sharing) > 0 && len(having) != 1 {
			w.violated("of those that share a disk one runs", "of %q in %s %q do", sharing, namespace, having)
		}
	}
	for _, k := range w.api.keys(spec.KindOperation) {
		o := into(w.api.top(k), &spec.VirtualMachineOperation{})
		if p := o.Status.Phase; !p.Finished() {
			w.violated("an operation ends", "%s is %q", k, p)
		}
	}
	w.checkPools()
}

// life runs a world for a number of steps and until it settles. It returns the promise
// that was broken; nil if none was.
func (w *clusterWorld) life(steps int) *promises.Violation {
	return promises.Broken(func() {
		for range steps {
			w.step()
		}
		w.settle()
	})
}

// Whatever happens to machines, classes and pools of several namespaces, however late the
// operator sees it and whenever it is killed: no disk has two machines, no request
// writes in another namespace, and in the end all is as wanted and nothing is written.
func TestPromisesOfAnOperator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newClusterWorld(t.Context(), func(what string, n int) int {
			if n == 1 {
				return 0
			}
			return rapid.IntRange(0, n-1).Draw(r, what)
		}, nil)
		if broken := w.life(rapid.IntRange(20, 150).Draw(r, "steps")); broken != nil {
			r.Fatalf("%v\n%s", broken, strings.Join(w.log, "\n"))
		}
	})
}
