package pool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

var errConflict = errors.New("conflict")

// store is an API server: it takes an update only of a machine that is as the
// writer saw it.
type store struct {
	version  int
	machines map[string]spec.VirtualMachine
	pools    map[string]spec.VmPool
	// deleted is when a pool of that name was deleted last. Its assignments end
	// then, also if another takes its name.
	deleted map[string]time.Time
}

// valid reports whether an assignment is from a pool that was there ever since.
func (s *store) valid(a *spec.Assignment) bool {
	_, exists := s.pools[a.Pool]
	used, err := time.Parse(time.RFC3339, a.LastUsed)
	return exists && err == nil && used.After(s.deleted[a.Pool])
}

func (s *store) put(vm spec.VirtualMachine) spec.VirtualMachine {
	s.version++
	vm.ResourceVersion = strconv.Itoa(s.version)
	s.machines[vm.Name] = *vm.DeepCopy()
	return vm
}

func (s *store) list() (machines []spec.VirtualMachine) {
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		vm := s.machines[name]
		machines = append(machines, *vm.DeepCopy())
	}
	return machines
}

func (s *store) listPools() []spec.VmPool { return slices.Collect(maps.Values(s.pools)) }

// patch does what the API server does with [pools.Update.Patch].
func (s *store) patch(u *pool.Update) (spec.VirtualMachine, error) {
	data, err := u.Patch()
	if err != nil {
		return spec.VirtualMachine{}, err
	}
	var p struct {
		Metadata struct{ ResourceVersion string }
		Status   struct{ Assignment *spec.Assignment }
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return spec.VirtualMachine{}, err
	}
	vm, ok := s.machines[u.Name]
	if !ok || vm.ResourceVersion != p.Metadata.ResourceVersion {
		return spec.VirtualMachine{}, errConflict
	}
	vm.Status.Assignment = p.Status.Assignment
	spec.Default(&vm)
	return s.put(vm), nil
}

// session is somebody at a user interface, who sees what was stored a while ago.
type session struct {
	user     string
	machines []spec.VirtualMachine
	pools    []spec.VmPool
}

// model is the world of the state machine.
type model struct {
	store    store
	sessions []*session
	operator session
	now      time.Time
}

func newModel(sessionsPerUser int) *model {
	m := &model{now: noon, store: store{machines: map[string]spec.VirtualMachine{}, pools: map[string]spec.VmPool{}, deleted: map[string]time.Time{}}}
	for i, of := range [][]string{{"students"}, {"students", "staff"}, {"students"}, {"staff", "students"}} {
		m.store.put(machine(fmt.Sprintf("m%d", i), memberOf(of...)))
	}
	m.store.pools["students"] = newPool("students", "PT1H")
	m.store.pools["staff"] = newPool("staff", "PT20M")
	for _, user := range []string{"ann", "bob", "eve"} {
		for range sessionsPerUser {
			m.sessions = append(m.sessions, &session{user: user})
		}
	}
	// The first session sees another machine free than the others.
	vm := m.store.machines["m0"]
	busy := *vm.DeepCopy()
	connected("root", m.now)(&busy)
	m.store.put(busy)
	m.refresh(m.sessions[0])
	m.store.put(vm)
	for _, s := range append(m.sessions[1:], &m.operator) {
		m.refresh(s)
	}
	return m
}

func (m *model) refresh(s *session) { s.machines, s.pools = m.store.list(), m.store.listPools() }

// request lets a session ask for a machine once. It checks that nobody loses a
// machine that is theirs.
func (m *model) request(t *rapid.T, s *session, poolName string) error {
	d := pool.Assign(pool.Request{
		Namespace: "lab", Pool: poolName, User: pool.User{Name: s.user, Roles: []string{"student"}},
		Pools: s.pools, Machines: s.machines, Now: m.now,
	})
	if d.Update == nil {
		return nil
	}
	before, existed := m.store.machines[d.Machine]
	written, err := m.store.patch(d.Update)
	if err != nil {
		return err
	}
	if !existed {
		t.Fatalf("%s was assigned and does not exist", d.Machine)
	}
	if a := before.Status.Assignment; a.User != s.user || a.Pool != poolName {
		if spec.ConditionIsTrue(before.Status.Conditions, spec.ConditionConsoleConnected) {
			t.Fatalf("%s was given to %s while %s is connected", d.Machine, s.user, before.Status.ConsoleUser)
		}
		if end, ok := pool.Expires(&before, m.store.listPools()); ok && m.store.valid(a) && m.now.Before(end) {
			t.Fatalf("%s was given to %s and belongs to %s until %v", d.Machine, s.user, a.User, end)
		}
	}
	for i := range s.machines { // everybody sees what they wrote
		if s.machines[i].Name == d.Machine {
			s.machines[i] = written
		}
	}
	return nil
}

// maintain lets the operator do its part, on what it sees.
func (m *model) maintain(t *rapid.T) (written int) {
	updates, _ := pool.Upkeep(m.operator.machines, m.operator.pools, m.now)
	for _, u := range updates {
		before := m.store.machines[u.Name]
		if u.Cause == pool.PoolDeleted && before.ResourceVersion == u.ResourceVersion {
			if m.store.valid(before.Status.Assignment) {
				t.Fatalf("%s was taken from %s though the pool exists", u.Name, before.Status.Assignment.User)
			}
		}
		if _, err := m.store.patch(&u); err != nil {
			continue
		}
		written++
		if end, ok := pool.Expires(&before, m.store.listPools()); u.Cause == pool.Expired && ok && m.store.valid(before.Status.Assignment) {
			if m.now.Before(end) || spec.ConditionIsTrue(before.Status.Conditions, spec.ConditionConsoleConnected) {
				t.Fatalf("%s was taken from %s, whose it is until %v", u.Name, before.Status.Assignment.User, end)
			}
		}
	}
	return written
}

// perUser returns how many machines users have from pools.
func (m *model) perUser() map[string]int {
	out := map[string]int{}
	for _, vm := range m.store.machines {
		if a := vm.Status.Assignment; a != nil && a.User != "" {
			out[a.User+" of "+a.Pool]++
		}
	}
	return out
}

func (m *model) actions() map[string]func(*rapid.T) {
	aSession := func(t *rapid.T) *session {
		return m.sessions[rapid.IntRange(0, len(m.sessions)-1).Draw(t, "session")]
	}
	aMachine := func(t *rapid.T) spec.VirtualMachine {
		name := rapid.SampledFrom([]string{"m0", "m1", "m2", "m3"}).Draw(t, "machine")
		vm, ok := m.store.machines[name]
		if !ok {
			t.Skip("deleted")
		}
		return *vm.DeepCopy()
	}
	aPool := rapid.SampledFrom([]string{"students", "staff"})
	actions := map[string]func(*rapid.T){
		"request":          func(t *rapid.T) { _ = m.request(t, aSession(t), aPool.Draw(t, "pool")) },
		"refresh":          func(t *rapid.T) { m.refresh(aSession(t)) },
		"refresh machines": func(t *rapid.T) { aSession(t).machines = m.store.list() },
		"observe machines": func(*rapid.T) { m.operator.machines = m.store.list() },
		"observe pools":    func(*rapid.T) { m.operator.pools = m.store.listPools() },
		"maintain":         func(t *rapid.T) { m.maintain(t) },
		"connect": func(t *rapid.T) {
			seldom(t)
			vm := aMachine(t)
			user := vm.Status.Assignment.User
			if user == "" || rapid.IntRange(0, 4).Draw(t, "administrator") == 1 {
				user = "root"
			}
			connected(user, m.now)(&vm)
			m.store.put(vm)
		},
		"disconnect": func(t *rapid.T) {
			vm := aMachine(t)
			disconnected(vm.Status.ConsoleUser, m.now)(&vm)
			m.store.put(vm)
		},
		"run": func(t *rapid.T) {
			vm := aMachine(t)
			running(&vm)
			m.store.put(vm)
		},
		"delete a machine": func(t *rapid.T) {
			seldom(t)
			if len(m.store.machines) == 1 {
				t.Skip("the last one")
			}
			delete(m.store.machines, aMachine(t).Name)
		},
		"create a machine": func(t *rapid.T) {
			name := rapid.SampledFrom([]string{"m0", "m1", "m2", "m3"}).Draw(t, "machine")
			if _, ok := m.store.machines[name]; ok {
				t.Skip("exists")
			}
			m.store.put(machine(name, memberOf("students", "staff")))
		},
		"delete a pool": func(t *rapid.T) {
			seldom(t)
			name := aPool.Draw(t, "pool")
			delete(m.store.pools, name)
			m.store.deleted[name] = m.now
		},
		"create a pool": func(t *rapid.T) {
			name := aPool.Draw(t, "pool")
			m.store.pools[name] = newPool(name, map[string]string{"students": "PT1H", "staff": "PT20M"}[name])
		},
		"wait": func(t *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
			// Machines may be seen late by any time, for the resource version tells.
			// Pools have no such guard and are seen within a minute.
			for _, s := range append(slices.Clone(m.sessions), &m.operator) {
				s.pools = m.store.listPools()
			}
		},
	}
	// What matters most happens most often.
	for _, name := range []string{"request", "disconnect", "refresh machines", "maintain"} {
		for i := range 4 {
			actions[fmt.Sprintf("%s (%d)", name, i)] = actions[name]
		}
	}
	return actions
}

// seldom lets an action that hides what others do happen less often.
func seldom(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "seldom") != 5 {
		t.Skip("seldom")
	}
}

// Users with views of any age never share a machine, and none gets two of one
// pool.
func TestUsersNeverShareAMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(1)
		actions := m.actions()
		actions[""] = func(t *rapid.T) {
			for who, n := range m.perUser() {
				if n > 1 {
					t.Fatalf("%s has %d machines", who, n)
				}
			}
		}
		for range 3 {
			t.Repeat(actions)
		}
		m.settle(t)
	})
}

// A user who asks in two places at once may get two machines, but not for long.
func TestDuplicatesAreTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(3)
		for range 3 {
			t.Repeat(m.actions())
		}
		m.settle(t)
	})
}

// settle lets everybody see everything and leave, and checks what remains.
func (m *model) settle(t *rapid.T) {
	for _, name := range slices.Sorted(maps.Keys(m.store.machines)) {
		vm := m.store.machines[name]
		if spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected) {
			vm = *vm.DeepCopy()
			disconnected(vm.Status.ConsoleUser, m.now)(&vm)
			m.store.put(vm)
		}
	}
	m.now = m.now.Add(time.Minute)
	m.refresh(&m.operator)
	m.maintain(t)
	m.refresh(&m.operator)
	if n := m.maintain(t); n > 0 {
		t.Fatalf("%d more updates in a world that has settled", n)
	}
	for who, n := range m.perUser() {
		if n > 1 {
			t.Fatalf("%s has %d machines", who, n)
		}
	}
	for _, vm := range m.store.machines {
		a := vm.Status.Assignment
		if a == nil || a.User == "" {
			continue
		}
		if _, ok := m.store.pools[a.Pool]; !ok {
			t.Fatalf("%s is assigned from %s, which is gone", vm.Name, a.Pool)
		}
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected)
		if vm.Status.ConsoleUser == a.User && c.Reason != spec.ReasonCreation && c.Status == metav1.ConditionFalse {
			used, err := time.Parse(time.RFC3339, a.LastUsed)
			if err != nil || used.Before(c.LastTransitionTime.Time) {
				t.Fatalf("%s was left at %v and last used at %q", vm.Name, c.LastTransitionTime, a.LastUsed)
			}
		}
	}
	// Whoever asks now gets what they have, or what is free, in one go.
	for _, s := range m.sessions {
		for name := range m.store.pools {
			m.refresh(s)
			if err := m.request(t, s, name); err != nil {
				t.Fatalf("%s asks for a machine of %s: %v", s.user, name, err)
			}
		}
	}
}
