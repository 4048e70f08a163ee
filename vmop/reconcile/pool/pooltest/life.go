package pooltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) life() *promises.Violation {
	return promises.Broken(func() {
		for _, namespace := range namespaces {
			for i := range 3 {
				w.makeMachine(fmt.Sprintf("%s/m%d", namespace, i))
			}
			for _, name := range poolNames {
				w.makePool(namespace + "/" + name)
			}
		}
		for _, name := range []string{"ann", "bob", "bob"} {
			w.people = append(w.people, &person{name, w.truth.copied()})
		}
		for _, namespace := range namespaces {
			// One of bob's two views has not observed the first machine.
			delete(w.people[1].view.machines, namespace+"/m0")
		}
		for range 5 + w.Draw("steps", 76) {
			w.step()
		}
		w.settle()
	})
}

func (w *world) step() {
	namespace := choose(w, "namespace", namespaces...)
	machine := fmt.Sprintf("%s/m%d", namespace, w.Draw("machine", 3))
	poolKey := namespace + "/" + choose(w, "pool", poolNames...)
	who := choose(w, "who", w.people...)
	switch what := w.Draw("what", 48); {
	case what < 11:
		w.reconcile(namespace, -1)
	case what < 13:
		w.reconcile(namespace, w.Draw("writes", 3))
		clear(w.wrote)
		clear(w.told)
		w.see(2)
		w.Note("another operator")
	case what < 19:
		w.see(w.Draw("cache", 3))
	case what < 26:
		w.ask(who, namespace, strings.TrimPrefix(poolKey, namespace+"/"))
	case what < 29:
		who.view = w.truth.copied()
	case what < 36:
		w.goTo(machine, what < 32)
	case what < 38:
		w.pass(choose(w, "time", time.Second, 3*time.Second, 20*time.Second))
	case what < 41:
		w.pass(choose(w, "long time", 2*time.Minute, 20*time.Minute, 90*time.Minute))
	case what == 41:
		w.comesOrGoes(machine)
	case what == 42 && w.truth.pools[poolKey] != nil:
		delete(w.truth.pools, poolKey)
		w.deleted[poolKey] = w.Now
		w.Note("pool %s is deleted", poolKey)
	case what < 45 && w.truth.pools[poolKey] == nil:
		w.makePool(poolKey)
	case what == 45 && w.truth.pools[poolKey] != nil:
		p := w.truth.pools[poolKey]
		w.putPool(poolKey, &storedPool{*p.DeepCopy(), !p.unreadable})
		w.Note("pool %s can be understood: %t", poolKey, p.unreadable)
	case what > 45:
		w.forbidden[namespace] = !w.forbidden[namespace]
		w.Note("writes in %s are forbidden: %t", namespace, w.forbidden[namespace])
	}
}

// pass lets time pass. Machines may be observed arbitrarily late, as their resource versions
// protect them. Pools have no such guard, and are observed within a minute.
func (w *world) pass(d time.Duration) {
	w.Now = w.Now.Add(d)
	w.see(1)
	for _, p := range w.people {
		p.view.pools = maps.Clone(w.truth.pools)
	}
	w.Note("%v later", d)
}

func (w *world) ask(p *person, namespace, name string) {
	machines, pools := p.view.all()
	d := pool.Assign(pool.Request{Namespace: namespace, Pool: name, User: pool.User{Name: p.name, Roles: []string{"student"}}, Pools: pools, Machines: machines, Now: w.Now})
	if d.Update == nil {
		return
	}
	w.Note("%s asks for a machine of %s/%s", p.name, namespace, name)
	a := d.Update.Action()
	if !w.patch(namespace, &a, nil) {
		w.Note("conflict")
	}
}

func (w *world) goTo(key string, comes bool) {
	vm := w.truth.machines[key]
	if vm == nil || !comes && !isConnected(vm) {
		return
	}
	vm = vm.DeepCopy()
	if comes {
		user := "root"
		if a := vm.Status.Assignment; a != nil && a.User != "" && w.Draw("administrator", 4) > 0 {
			user = a.User
		}
		atConsole(vm, user, metav1.ConditionTrue, w.Now)
	} else {
		atConsole(vm, vm.Status.ConsoleUser, metav1.ConditionFalse, w.Now)
	}
	w.putMachine(key, vm)
	w.Note("%s is at machine %s: %t", vm.Status.ConsoleUser, key, comes)
}

func (w *world) comesOrGoes(key string) {
	switch vm := w.truth.machines[key]; {
	case vm == nil:
		w.makeMachine(key)
	case vm.DeletionTimestamp == nil:
		vm = vm.DeepCopy()
		vm.DeletionTimestamp = &metav1.Time{Time: w.Now}
		w.putMachine(key, vm)
		w.Note("machine %s is being deleted", key)
	default:
		delete(w.truth.machines, key)
		w.Note("machine %s is deleted", key)
	}
}

func (w *world) settle() {
	clear(w.forbidden)
	w.pass(10 * time.Minute)
	for _, key := range slices.Sorted(maps.Keys(w.truth.machines)) {
		w.goTo(key, false)
	}
	for _, namespace := range namespaces {
		w.rest(namespace)
	}
	w.checkUsers()
	for _, namespace := range namespaces {
		for range 40 {
			wake := w.rest(namespace)
			if wake.IsZero() {
				break
			}
			if !wake.After(w.Now) {
				w.Violated("the world comes to rest", "the operator looks again at %v, which is not after %v", wake, w.Now)
			}
			w.Now = wake
		}
	}
	w.checkPools()
}

// rest lets the operator write what it has to. It returns when it wakes.
func (w *world) rest(namespace string) time.Time {
	for range 20 {
		w.see(2)
		plan, tried := w.reconcile(namespace, -1)
		if tried == 0 {
			return plan.Wake
		}
	}
	w.Violated("the world comes to rest", "there is no end of writes in %s", namespace)
	return time.Time{}
}

// checkUsers verifies the state after all writes, before anything else expires.
func (w *world) checkUsers() {
	has := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(w.truth.machines)) {
		vm := w.truth.machines[key]
		a := vm.Status.Assignment
		if a == nil || a.User == "" || vm.DeletionTimestamp != nil {
			continue
		}
		of := a.User + " of " + vm.Namespace + "/" + a.Pool
		if other := has[of]; other != "" {
			w.Violated("a user has one machine of a pool", "%s has %s and %s", of, other, key)
		}
		has[of] = key
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected)
		if vm.Status.ConsoleUser != a.User || c.Reason == spec.ReasonCreation {
			continue
		}
		if used, err := time.Parse(time.RFC3339, a.LastUsed); w.stands(vm.Namespace, a) && (err != nil || used.Before(c.LastTransitionTime.Time)) {
			w.Violated("the last use of a machine is known", "%s was left at %v and last used at %q", key, c.LastTransitionTime, a.LastUsed)
		}
	}
}

// checkPools verifies the final state: all assignments have expired, except those of a pool that
// cannot be decoded.
func (w *world) checkPools() {
	sizes := map[string][]pool.Member{}
	for _, key := range slices.Sorted(maps.Keys(w.truth.machines)) {
		vm := w.truth.machines[key]
		sizes[vm.Namespace] = append(sizes[vm.Namespace], memberOfPools(vm))
		a := vm.Status.Assignment
		if a == nil || a.User == "" || vm.DeletionTimestamp != nil {
			continue
		}
		switch p := w.truth.pools[vm.Namespace+"/"+a.Pool]; {
		case p == nil:
			w.Violated("an assignment ends with its pool", "machine %s is assigned to %s from %s", key, a.User, a.Pool)
		case !p.unreadable:
			w.Violated("what has expired is free", "machine %s is assigned to %s from %s since %s, for %s", key, a.User, a.Pool, a.LastUsed, p.Spec.Retention)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.truth.pools)) {
		p := w.truth.pools[key]
		if p.unreadable {
			if w.heard[p.UID] != p.ResourceVersion {
				w.Violated("an unreadable pool is told of", "%s", key)
			}
			continue
		}
		machines, free, used := pool.Sizes(p.Name, sizes[p.Namespace])
		if st := &p.Status; st.Machines == nil || st.Free == nil || st.Used == nil || *st.Machines != machines || *st.Free != free || *st.Used != used {
			w.Violated("the sizes of a pool are true", "%s: %+v, and there are %d, %d free and %d used", key, *st, machines, free, used)
		}
	}
}
