package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// clusterPools are the pools that there may be. Those of one name have nothing to do with
// each other.
var clusterPools = []modelKey{
	{spec.KindVMPool, "apps", "benches"}, {spec.KindVMPool, "apps", "desks"}, {spec.KindVMPool, "lab", "desks"},
}

// clusterUsers may use any pool.
var clusterUsers = []string{"ann", "bob"}

// clusterRetentions are for how long pools keep a machine for its user; of the last nobody
// can say.
var clusterRetentions = []string{"PT1H", "PT5M", "soon"}

func poolsOf(namespace string) []any {
	var out []any
	for _, k := range clusterPools {
		if k.namespace == namespace {
			out = append(out, k.name)
		}
	}
	return out
}

// poolsFor are the pools that a machine is put in: some, for one that was made for a pool.
func (w *clusterWorld) poolsFor(k modelKey) []any {
	all := poolsOf(k.namespace)
	least := 0
	if slices.Contains(w.members[k.namespace], k.name) {
		least = 1
	}
	switch n := w.choose("pools", len(all)+2-least) + least; n {
	case 0:
		return nil
	case len(all) + 1:
		return all
	default:
		return all[n-1 : n]
	}
}

func (w *clusterWorld) createPool(k modelKey) {
	p := ownKind(k.namespace, k.kind, k.name)
	p.SetGeneration(1)
	p.Object["spec"] = map[string]any{
		"retention":   clusterRetentions[w.choose("retention", len(clusterRetentions))],
		"permissions": []any{map[string]any{"role": "student", "may": []any{string(spec.PoolActionAll)}}},
	}
	w.note("somebody creates %s: %v", k, p.Object["spec"])
	w.api.put(k, p.Object)
}

// createMember makes a machine for a pool.
func (w *clusterWorld) createMember(pool modelKey, number int) {
	k := modelKey{spec.KindVirtualMachine, pool.namespace, fmt.Sprintf("%s-%d", pool.name, number)}
	w.members[k.namespace] = append(w.members[k.namespace], k.name)
	w.createMachine(k)
}

// changePool is an administrator who makes a pool, changes or deletes it.
func (w *clusterWorld) changePool(k modelKey) {
	o := w.api.copied(k)
	switch {
	case o == nil:
		w.createPool(k)
	case w.choose("deleted", 2) == 0:
		w.note("somebody deletes %s", k)
		w.api.put(k, nil)
	default:
		retention := clusterRetentions[w.choose("retention", len(clusterRetentions))]
		_ = unstructured.SetNestedField(o, retention, "spec", "retention")
		u := unstructured.Unstructured{Object: o}
		u.SetGeneration(u.GetGeneration() + 1)
		w.note("%s has the retention %s", k, retention)
		w.api.put(k, o)
	}
}

// user is somebody who asks for a machine of a pool, or comes to a console or leaves it.
func (w *clusterWorld) user() {
	name := clusterUsers[w.choose("user", len(clusterUsers))]
	k := clusterPools[w.choose("pool", len(clusterPools))]
	if w.choose("asks", 2) == 0 {
		w.ask(name, k)
		return
	}
	var pods []modelKey
	for _, pod := range w.api.keys(kindPod) {
		if g := w.guests[uidOf(w.api.top(pod))]; g != nil && g.told {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return
	}
	pod := pods[w.choose("pod", len(pods))]
	g := w.guests[uidOf(w.api.top(pod))]
	vm := into(w.api.top(modelKey{spec.KindVirtualMachine, pod.namespace, pod.name}), &spec.VirtualMachine{})
	if g.connected = !g.connected; g.connected {
		if g.user = name; vm.Status.Assignment != nil && vm.Status.Assignment.User != "" && w.choose("somebody else", 3) > 0 {
			g.user = vm.Status.Assignment.User
		}
	}
	w.note("%s is at the console of %s: %v", g.user, pod, g.connected)
	g.told = false
	w.tend(pod, 0)
}

// ask is somebody who asks for a machine of a pool, perhaps where it is not seen that
// they have one.
func (w *clusterWorld) ask(user string, k modelKey) {
	r := poolkind.Request{Namespace: k.namespace, Pool: k.name, User: poolkind.User{Name: user, Roles: []string{"student"}}, Now: w.now, Pools: w.poolsThatAre(k.namespace)}
	late := w.choose("late", 3) == 1
	for _, m := range w.api.keys(spec.KindVirtualMachine) {
		vm := into(w.api.top(m), &spec.VirtualMachine{})
		if a := vm.Status.Assignment; m.namespace == k.namespace && (!late || a == nil || a.User != user) {
			r.Machines = append(r.Machines, *vm)
		}
	}
	d := poolkind.Assign(r)
	w.note("%s asks %s for a machine, and gets %q: %s", user, k, d.Machine, d.Reason)
	m := modelKey{spec.KindVirtualMachine, k.namespace, d.Machine}
	if d.Update != nil {
		o := w.api.copied(m)
		_ = unstructured.SetNestedMap(o, content(d.Update.Assignment), "status", "assignment")
		w.api.own(uidOf(o), names.AssignmentManager, map[string]bool{"assignment": true})
		w.api.put(m, o)
	}
	if !d.Start {
		return
	}
	o := w.api.copied(m)
	if policy, _, _ := unstructured.NestedString(o, "spec", "runPolicy"); policy != "" {
		w.request(m, string(spec.OperationStart), false)
		return
	}
	_ = unstructured.SetNestedField(o, string(spec.StateRunning), "spec", "vm", "state")
	u := unstructured.Unstructured{Object: o}
	u.SetGeneration(u.GetGeneration() + 1)
	w.upsets[m]++
	w.api.put(m, o)
}

func uidOf(o map[string]any) types.UID { return (&unstructured.Unstructured{Object: o}).GetUID() }

// poolsThatAre are the pools of a namespace.
func (w *clusterWorld) poolsThatAre(namespace string) []spec.VmPool {
	var out []spec.VmPool
	for _, k := range w.api.keys(spec.KindVMPool) {
		if k.namespace == namespace {
			out = append(out, *into(w.api.top(k), &spec.VmPool{}))
		}
	}
	return out
}

// holderOf names the user of a machine and the pool that it is from; it is empty if there
// is none.
func holderOf(k modelKey, a *spec.Assignment) string {
	if a == nil || a.User == "" {
		return ""
	}
	return a.User + " of " + k.namespace + "/" + a.Pool
}

func lastUsedAt(a *spec.Assignment) time.Time {
	at, err := time.Parse(time.RFC3339, a.LastUsed)
	if err != nil {
		panic(err)
	}
	return at
}

func atConsole(vm *spec.VirtualMachine) bool {
	return spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected)
}

// checkTaken holds for every machine that the operator takes from a user, as it was then.
func (w *clusterWorld) checkTaken(k modelKey, o map[string]any) {
	vm := into(o, &spec.VirtualMachine{})
	a := vm.Status.Assignment
	p := w.api.top(modelKey{spec.KindVMPool, k.namespace, a.Pool})
	if p == nil || lastUsedAt(a).Before(into(p, &spec.VmPool{}).CreationTimestamp.Time) {
		return // the pool that it was from is gone
	}
	if atConsole(vm) {
		w.violated("a machine that is used is not taken", "%s is taken from %s", k, holderOf(k, a))
	}
	// The operator knows what it has seen.
	has := 0
	for _, other := range w.api.keys(spec.KindVirtualMachine) {
		if m, is := w.cache.object(other).(*machine); is && other.namespace == k.namespace {
			if seen, err := m.decode(); err == nil && seen.DeletionTimestamp == nil && holderOf(other, seen.Status.Assignment) == holderOf(k, a) {
				has++
			}
		}
	}
	var pools []spec.VmPool
	if seen, is := w.cache.object(modelKey{spec.KindVMPool, k.namespace, a.Pool}).(*pool); is {
		if decoded, err := seen.decode(); err == nil {
			pools = append(pools, *decoded)
		}
	}
	if end, known := poolkind.Expires(vm, pools); has < 2 && (!known || w.now.Before(end)) {
		w.violated("nobody loses a machine that is theirs", "%s is taken from %s, whose it is until %v", k, holderOf(k, a), end)
	}
}

// checkPools is what must hold of pools and their users when nothing happens any more.
func (w *clusterWorld) checkPools() {
	type counts struct{ Machines, Free, Used int32 }
	has := map[modelKey]counts{}
	held := map[string][]modelKey{}
	idle := map[string]bool{}
	for _, k := range w.api.keys(spec.KindVirtualMachine) {
		vm := into(w.api.top(k), &spec.VirtualMachine{})
		a, holder := vm.Status.Assignment, holderOf(k, vm.Status.Assignment)
		for _, name := range vm.Spec.Pools {
			p := modelKey{spec.KindVMPool, k.namespace, name}
			c := has[p]
			c.Machines++
			switch {
			case holder != "" && a.Pool == name:
				c.Used++
			case holder == "" && !atConsole(vm):
				c.Free++
			}
			has[p] = c
		}
		if holder == "" {
			continue
		}
		held[holder] = append(held[holder], k)
		idle[holder] = idle[holder] || !atConsole(vm)
		if w.api.top(modelKey{spec.KindVMPool, k.namespace, a.Pool}) == nil {
			w.violated("an assignment ends with its pool", "%s is still that of %s", k, holder)
		}
		if end, known := poolkind.Expires(vm, w.poolsThatAre(k.namespace)); known && !atConsole(vm) && w.now.After(end.Add(longestLag)) {
			w.violated("what has expired is free", "%s is still that of %s, since %v", k, holder, end)
		}
	}
	for holder, machines := range held {
		if len(machines) > 1 && idle[holder] {
			w.violated("a user has one machine of a pool", "%s has %v", holder, machines)
		}
	}
	for _, k := range w.api.keys(spec.KindVMPool) {
		want, _ := json.Marshal(has[k])
		var says struct{ Machines, Free, Used *int32 }
		got, _ := json.Marshal(into(w.api.top(k), &spec.VmPool{}).Status)
		if err := json.Unmarshal(got, &says); err != nil {
			panic(err)
		}
		if stated, _ := json.Marshal(says); string(stated) != string(want) {
			w.violated("a pool knows its machines", "%s has %s, and says %s", k, want, got)
		}
	}
}
