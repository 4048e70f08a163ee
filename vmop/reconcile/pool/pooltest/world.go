package pooltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

type storedPool struct {
	spec.VmPool
	// unreadable: the types cannot decode what is stored.
	unreadable bool
}

// state is what an API server has, or a client's view of it, by NAMESPACE/NAME. Objects are never
// modified.
type state struct {
	machines map[string]*spec.VirtualMachine
	pools    map[string]*storedPool
}

func (s *state) copied() state { return state{maps.Clone(s.machines), maps.Clone(s.pools)} }

func (s *state) all() (machines []spec.VirtualMachine, pools []spec.VmPool) {
	for _, key := range slices.Sorted(maps.Keys(s.machines)) {
		machines = append(machines, *s.machines[key].DeepCopy())
	}
	for _, key := range slices.Sorted(maps.Keys(s.pools)) {
		if p := s.pools[key]; !p.unreadable {
			pools = append(pools, *p.DeepCopy())
		}
	}
	return machines, pools
}

// person is a client of a user interface, with an old view.
type person struct {
	name string
	view state
}

// world has the machines and pools of two namespaces, users who request machines, connect to
// their consoles and leave them, and the operator.
type world struct {
	promises.World[pool.Snapshot]
	truth, cache state
	people       []*person
	// deleted is when a pool of that name was last deleted: its assignments end then, even if
	// another one takes its name.
	deleted map[string]time.Time
	// wrote are the versions that the caches of this operator must show, told the versions of
	// pools that it has reported.
	wrote map[string]int
	told  map[types.UID]string
	// heard are the versions of pools that users have seen events about.
	heard map[types.UID]string
	// counted is when the sizes of a pool were written.
	counted map[types.UID]time.Time
	// forbidden are the namespaces in which the operator's writes are refused, and failures the
	// refusals.
	forbidden map[string]bool
	failures  map[string][]reconcile.Failure
}

var (
	namespaces = []string{"lab", "shop"}
	poolNames  = []string{"students", "staff"}
	retentions = []string{"PT1H", "PT20M", "PT0S", "2026-01-31T15:00:00Z"}
)

func newWorld() *world {
	w := &world{
		World: promises.World[pool.Snapshot]{Decide: pool.Decide, Now: noon},
		truth: state{map[string]*spec.VirtualMachine{}, map[string]*storedPool{}},
		wrote: map[string]int{}, told: map[types.UID]string{}, heard: map[types.UID]string{}, deleted: map[string]time.Time{}, counted: map[types.UID]time.Time{},
		forbidden: map[string]bool{}, failures: map[string][]reconcile.Failure{},
	}
	w.cache = w.truth.copied()
	return w
}

func choose[T any](w *world, label string, from ...T) T { return from[w.Draw(label, len(from))] }

func (w *world) putMachine(key string, vm *spec.VirtualMachine) {
	vm.ResourceVersion = w.Version()
	w.truth.machines[key] = vm
}

func (w *world) putPool(key string, p *storedPool) {
	p.ResourceVersion = w.Version()
	w.truth.pools[key] = p
}

func (w *world) makeMachine(key string) {
	namespace, name, _ := strings.Cut(key, "/")
	vm := spec.NewVirtualMachine(namespace, name)
	vm.UID, vm.Spec.Pools = w.UID(), choose(w, "of pools", poolNames, poolNames[:1], poolNames[1:], nil)
	spec.Default(vm)
	w.putMachine(key, vm)
	w.Note("machine %s of %v is made", key, vm.Spec.Pools)
}

func (w *world) makePool(key string) {
	p := &storedPool{VmPool: newPool("", choose(w, "retention", retentions...))}
	p.Namespace, p.Name, _ = strings.Cut(key, "/")
	p.UID = w.UID()
	w.putPool(key, p)
	w.Note("pool %s with retention %s is made", key, p.Spec.Retention)
}

func newPool(name, retention string) spec.VmPool {
	p := spec.VmPool{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab"}}
	p.Spec.Retention = retention
	p.Spec.Permissions = []spec.PoolPermission{{Role: "student", May: []spec.PoolAction{spec.PoolActionAll}}}
	return p
}

// see updates the operator's caches: of machines, of pools, or both.
func (w *world) see(which int) {
	now := w.truth.copied()
	if which != 1 {
		w.cache.machines = now.machines
	}
	if which != 0 {
		w.cache.pools = now.pools
	}
}

func (w *world) behind() bool {
	lacks := func(o metav1.Object, there bool, version int) bool {
		v, _ := strconv.Atoi(o.GetResourceVersion())
		return there && v < version
	}
	for key, version := range w.wrote {
		kind, key, _ := strings.Cut(key, " ")
		if kind == names.KindVMPool {
			if c := w.cache.pools[key]; c != nil && lacks(c, w.truth.pools[key] != nil, version) {
				return true
			}
		} else if c := w.cache.machines[key]; c != nil && lacks(c, w.truth.machines[key] != nil, version) {
			return true
		}
	}
	return false
}

func (w *world) snapshot(namespace string) pool.Snapshot {
	s := pool.Snapshot{Now: w.Now, Failures: w.failures[namespace]}
	machines, pools := w.cache.all()
	for i := range machines {
		vm := &machines[i]
		if vm.Namespace != namespace {
			continue
		}
		a := vm.Status.Assignment
		if a != nil && a.Pool != "" {
			s.Machines = append(s.Machines, *vm)
		}
		if len(vm.Spec.Pools) > 0 {
			s.Members = append(s.Members, memberOfPools(vm))
		}
	}
	for i := range pools {
		if pools[i].Namespace == namespace {
			s.Pools = append(s.Pools, pools[i])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.cache.pools)) {
		if p := w.cache.pools[key]; p.unreadable && p.Namespace == namespace {
			s.Unreadable = append(s.Unreadable, pool.Unreadable{Pool: p.ObjectMeta, Err: fmt.Errorf("spec.permissions: not a list"), Told: w.told[p.UID] == p.ResourceVersion})
		}
	}
	return s
}

func memberOfPools(vm *spec.VirtualMachine) pool.Member {
	m := pool.Member{Pools: vm.Spec.Pools, Connected: isConnected(vm), Goes: vm.DeletionTimestamp != nil}
	if vm.Status.Assignment != nil {
		m.Assigned = vm.Status.Assignment.Pool
	}
	return m
}

func isConnected(vm *spec.VirtualMachine) bool {
	return spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected)
}

func atConsole(vm *spec.VirtualMachine, user string, status metav1.ConditionStatus, at time.Time) {
	vm.Status.ConsoleUser = user
	vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
		Type: spec.ConditionConsoleConnected, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(at),
	})
	// Another user's connection is a transition, too.
	spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected).LastTransitionTime = metav1.NewTime(at)
}

// reconcile decides about a namespace and executes the first writes of the plan: all of them if
// most is negative. It returns the plan and the number of attempted writes.
func (w *world) reconcile(namespace string, most int) (reconcile.Plan, int) {
	if w.behind() {
		return reconcile.Plan{}, 0
	}
	s := w.snapshot(namespace)
	before, _ := json.Marshal(s)
	plan := w.Decide(s)
	if again := w.Decide(s); !reflect.DeepEqual(plan, again) {
		w.Violated("equal snapshots give equal plans", "two plans for one snapshot:\n%+v\n%+v", plan, again)
	}
	if after, _ := json.Marshal(s); string(before) != string(after) {
		w.Violated("a snapshot is not changed", "it has")
	}
	for i := range plan.Events {
		w.hear(&plan.Events[i])
	}
	for _, u := range s.Unreadable {
		w.told[u.Pool.UID] = u.Pool.ResourceVersion
	}
	tried := 0
	for _, a := range plan.Actions {
		if tried == most {
			w.Note("the operator dies")
			return plan, tried
		}
		tried++
		if w.refuses(namespace, a.Target()) {
			continue
		}
		p, is := a.(reconcile.Patch)
		if !is {
			w.Violated("only assignments are written", "%T", a)
		}
		if !w.patch(namespace, &p, &s) {
			w.Note("conflict: %s", a.Target())
		}
	}
	for _, st := range plan.Statuses {
		if tried == most {
			w.Note("the operator dies")
			return plan, tried
		}
		if tried++; !w.refuses(namespace, st.Target()) {
			w.count(namespace, &st)
		}
	}
	return plan, tried
}

func (w *world) hear(e *reconcile.Event) {
	for _, p := range w.truth.pools {
		if p.UID == e.About.UID && w.told[p.UID] == p.ResourceVersion {
			w.Violated("an unreadable pool is told of once", "%s", e)
		}
		if p.UID == e.About.UID {
			w.heard[p.UID] = w.cache.pools[p.Namespace+"/"+p.Name].ResourceVersion
		}
	}
	w.Note("event: %s", e)
}

func (w *world) refuses(namespace string, t reconcile.Target) bool {
	all := w.failures[namespace]
	i := slices.IndexFunc(all, func(f reconcile.Failure) bool { return f.Target == t })
	if i >= 0 && w.Now.Before(all[i].RetryAt()) {
		w.Violated("what was refused is not repeated at once", "%s", t)
	}
	f := reconcile.Failure{Target: t, Reason: "Forbidden", Message: "a policy forbids it", Count: 1, Last: w.Now}
	if i >= 0 {
		f.Count = all[i].Count + 1
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	if w.forbidden[namespace] {
		all = append(slices.Clone(all), f)
		w.Note("refused: %s", t)
	}
	w.failures[namespace] = all
	return w.forbidden[namespace]
}

// patch writes an assignment as the API server does, the operator's if by is not nil. It reports
// whether it was accepted.
func (w *world) patch(namespace string, a *reconcile.Patch, by *pool.Snapshot) bool {
	status, _ := a.Fields["status"].(map[string]any)
	if a.Kind != names.KindVirtualMachine || a.Subresource != "status" || a.Manager != pool.StatusManager || len(a.Fields) != 1 || len(status) != 1 {
		w.Violated("only assignments are written", "%+v", a)
	}
	if a.ResourceVersion == "" || a.UID == "" {
		w.Violated("a write says what it was decided on", "%+v", a)
	}
	key := namespace + "/" + a.Name
	vm := w.truth.machines[key]
	if vm == nil || vm.UID != a.UID || vm.ResourceVersion != a.ResourceVersion {
		return false
	}
	next := vm.DeepCopy()
	next.Status.Assignment, _ = status["assignment"].(*spec.Assignment)
	if by != nil && next.Status.Assignment == nil {
		w.checkTaken(vm, by)
	}
	if !reflect.DeepEqual(vm, next) {
		w.putMachine(key, next)
		if by != nil {
			w.wrote[names.KindVirtualMachine+" "+key] = w.Serial
		}
	}
	w.Note("machine %s: assignment %+v", key, next.Status.Assignment)
	return true
}

// stands reports whether an assignment's pool has existed ever since.
func (w *world) stands(namespace string, a *spec.Assignment) bool {
	used, err := time.Parse(time.RFC3339, a.LastUsed)
	return err == nil && w.truth.pools[namespace+"/"+a.Pool] != nil && used.After(w.deleted[namespace+"/"+a.Pool])
}

func (w *world) checkTaken(vm *spec.VirtualMachine, by *pool.Snapshot) {
	a := vm.Status.Assignment
	if !w.stands(vm.Namespace, a) {
		return
	}
	if isConnected(vm) {
		w.Violated("a machine that is used is not taken", "%s/%s is taken from %s", vm.Namespace, vm.Name, a.User)
	}
	end, known := pool.Expires(vm, by.Pools)
	has := 0
	for i := range by.Machines {
		if o := &by.Machines[i]; o.DeletionTimestamp == nil && o.Status.Assignment.User == a.User && o.Status.Assignment.Pool == a.Pool {
			has++
		}
	}
	if has < 2 && (!known || w.Now.Before(end)) {
		w.Violated("nobody loses a machine that is theirs", "%s/%s is taken from %s, whose it is until %v", vm.Namespace, vm.Name, a.User, end)
	}
}

func (w *world) count(namespace string, st *reconcile.StatusApply) {
	key := namespace + "/" + st.Name
	p := w.truth.pools[key]
	if p == nil || p.UID != st.UID {
		return
	}
	if last, before := w.counted[p.UID]; before && w.Now.Sub(last) < 4*time.Second { // times are whole seconds
		w.Violated("a pool is counted anew after five seconds", "%s after %v", key, w.Now.Sub(last))
	}
	w.counted[p.UID] = w.Now
	next := &storedPool{VmPool: *p.DeepCopy(), unreadable: p.unreadable}
	data, err := json.Marshal(st.Status)
	if err == nil {
		err = json.Unmarshal(data, &next.Status)
	}
	if err != nil {
		w.Violated("the sizes of a pool are true", "%v", err)
	}
	w.putPool(key, next)
	w.wrote[names.KindVMPool+" "+key] = w.Serial
	w.Note("pool %s: %s", key, data)
}
