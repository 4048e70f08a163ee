package pool_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

var ann = pool.User{Name: "ann", Roles: []string{"student"}}

func TestAssign(t *testing.T) {
	students := []spec.VmPool{newPool("students", "PT1h")}
	watcher := newPool("students", "PT1h")
	watcher.Spec.Permissions = []spec.PoolPermission{{User: "ann"}} // accessConsole
	broken := newPool("students", "1h")
	for _, c := range []struct {
		name     string
		pools    []spec.VmPool
		machines []spec.VirtualMachine
		user     pool.User
		machine  string
		update   bool
		start    bool
		reason   pool.Reason
		wake     time.Time
	}{
		{name: "a free machine", machines: []spec.VirtualMachine{machine("a")}, machine: "a", update: true, start: true},
		{name: "one that runs is not started", machines: []spec.VirtualMachine{machine("a", running)}, machine: "a", update: true},
		{name: "the one that the user has", machines: []spec.VirtualMachine{machine("a"), machine("b", assigned("students", "ann", ago(time.Minute)))}, machine: "b", update: true, start: true},
		{name: "which is unchanged if it was used right now", machines: []spec.VirtualMachine{machine("b", running, assigned("students", "ann", noon))}, machine: "b"},
		{name: "even if it has expired", machines: []spec.VirtualMachine{machine("a"), machine("b", assigned("students", "ann", ago(24*time.Hour)))}, machine: "b", update: true, start: true},
		{name: "even if it is no member any more", machines: []spec.VirtualMachine{machine("a"), machine("b", memberOf(), assigned("students", "ann", ago(time.Hour)))}, machine: "b", update: true, start: true},
		{name: "but not if it is being deleted", machines: []spec.VirtualMachine{machine("a"), machine("b", assigned("students", "ann", ago(time.Minute)), deleting)}, machine: "a", update: true, start: true},
		{name: "never used before long ago before lately", machines: []spec.VirtualMachine{
			machine("a", assigned("students", "bob", ago(2*time.Hour))), machine("b", assigned("students", "eve", ago(3*time.Hour))), machine("c"),
		}, machine: "c", update: true, start: true},
		{name: "longest unused", machines: []spec.VirtualMachine{
			machine("a", assigned("students", "bob", ago(2*time.Hour))), machine("b", assigned("students", "eve", ago(3*time.Hour))),
		}, machine: "b", update: true, start: true},
		{name: "of equals the one that runs", machines: []spec.VirtualMachine{machine("a"), machine("b", running)}, machine: "b", update: true},
		{name: "of equals the first by name", machines: []spec.VirtualMachine{machine("b"), machine("a")}, machine: "a", update: true, start: true},
		{name: "not before the retention is over", machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", ago(time.Hour-time.Second)))}, reason: pool.AllInUse, wake: noon.Add(time.Second)},
		{name: "as soon as it is over", machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", ago(time.Hour)))}, machine: "a", update: true, start: true},
		{name: "which also counts from the console", machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", ago(2*time.Hour)), disconnected("root", ago(time.Minute)))}, reason: pool.AllInUse, wake: noon.Add(59 * time.Minute)},
		{name: "not while a console is connected", machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", ago(48*time.Hour)), connected("bob", ago(47*time.Hour)))}, reason: pool.AllInUse},
		{name: "not even if nobody has it", machines: []spec.VirtualMachine{machine("a", connected("root", ago(47*time.Hour)))}, reason: pool.AllInUse},
		{name: "no machine of another pool", machines: []spec.VirtualMachine{machine("a", memberOf("staff"))}, reason: pool.NoMachines},
		{name: "no machine that is being deleted", machines: []spec.VirtualMachine{machine("a", deleting)}, reason: pool.NoMachines},
		{
			name:  "another pool's retention protects what it has assigned",
			pools: []spec.VmPool{newPool("students", "PT1M"), newPool("staff", "P1D")},
			machines: []spec.VirtualMachine{
				machine("a", memberOf("students", "staff"), assigned("staff", "bob", ago(time.Hour))),
			},
			reason: pool.AllInUse, wake: noon.Add(23 * time.Hour),
		},
		{
			name:     "a pool that is not in view protects for a minute",
			machines: []spec.VirtualMachine{machine("a", assigned("gone", "bob", ago(59*time.Second)))},
			reason:   pool.AllInUse, wake: noon.Add(time.Second),
		},
		{name: "and no longer", machines: []spec.VirtualMachine{machine("a", assigned("gone", "bob", ago(time.Minute)))}, machine: "a", update: true, start: true},
		{
			name:     "a retention that nobody can read protects for ever",
			pools:    []spec.VmPool{newPool("students", "PT1H"), newPool("staff", "soon")},
			machines: []spec.VirtualMachine{machine("a", assigned("staff", "bob", ago(9000*time.Hour)))},
			reason:   pool.AllInUse,
		},
		{name: "no pool", pools: []spec.VmPool{newPool("staff", "PT1h")}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.PoolNotFound},
		{name: "no permission", user: pool.User{Name: "mallory"}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.NotPermitted},
		{name: "nobody", user: pool.User{Roles: []string{"student"}}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.NotPermitted},
		{name: "an unreadable retention", pools: []spec.VmPool{broken}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.InvalidRetention},
		{name: "a pool that has ended", pools: []spec.VmPool{newPool("students", "2026-01-31T12:00:00Z")}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.PoolEnded},
		{name: "still leaves what it gave", pools: []spec.VmPool{newPool("students", "2026-01-31T12:00:00Z")}, machines: []spec.VirtualMachine{machine("a", running, assigned("students", "ann", noon))}, machine: "a"},
		{name: "a pool that has not ended", pools: []spec.VmPool{newPool("students", "2026-01-31T12:00:01Z")}, machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", ago(999*time.Hour))), machine("b")}, machine: "b", update: true, start: true},
		{name: "who may not start gets one that runs", pools: []spec.VmPool{watcher}, machines: []spec.VirtualMachine{machine("a"), machine("b", running)}, machine: "b", update: true},
		{name: "or none", pools: []spec.VmPool{watcher}, machines: []spec.VirtualMachine{machine("a")}, reason: pool.StartNotPermitted},
		{name: "and does not start what is his", pools: []spec.VmPool{watcher}, machines: []spec.VirtualMachine{machine("a", assigned("students", "ann", ago(time.Minute)))}, machine: "a", update: true, reason: pool.StartNotPermitted},
		// January 31 and a month is the last day of February, 28 days later.
		{name: "months", pools: []spec.VmPool{newPool("students", "P1M")}, machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", noon))}, reason: pool.AllInUse, wake: time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)},
		{name: "years and weeks", pools: []spec.VmPool{newPool("students", "P1Y2W")}, machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", noon))}, reason: pool.AllInUse, wake: time.Date(2027, 2, 14, 12, 0, 0, 0, time.UTC)},
		// A day is a day also where a user's clocks are changed.
		{name: "days", pools: []spec.VmPool{newPool("students", "P60D")}, machines: []spec.VirtualMachine{machine("a", assigned("students", "bob", noon.In(time.FixedZone("CET", 3600))))}, reason: pool.AllInUse, wake: time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := pool.Request{Namespace: "lab", Pool: "students", User: ann, Pools: students, Machines: c.machines, Now: noon}
			if c.pools != nil {
				r.Pools = c.pools
			}
			if c.user.Name != "" || c.user.Roles != nil {
				r.User = c.user
			}
			d := pool.Assign(r)
			if d.Machine != c.machine || (d.Update != nil) != c.update || d.Start != c.start || d.Reason != c.reason || !d.Wake.Equal(c.wake) {
				t.Errorf("%+v", d)
			}
			if (d.Message == "") != (d.Reason == "") {
				t.Errorf("reason %q, message %q", d.Reason, d.Message)
			}
			if u := d.Update; u != nil {
				want := spec.Assignment{Pool: "students", User: "ann", LastUsed: "2026-01-31T12:00:00Z"}
				if *u.Assignment != want || u.Name != c.machine || u.Namespace != "lab" || u.ResourceVersion != "1" || u.Cause != pool.Requested {
					t.Errorf("%+v", u)
				}
			}
		})
	}
}

// The same request has the same answer in whatever order it is told, and a
// decision that was carried out has nothing to do a second time.
func TestAssignIsDeterministicAndConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		before, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		d := pool.Assign(r)
		shuffled := r
		shuffled.Machines = rapid.Permutation(r.Machines).Draw(t, "machines")
		shuffled.Pools = rapid.Permutation(r.Pools).Draw(t, "pools")
		if diff := cmp.Diff(d, pool.Assign(shuffled)); diff != "" {
			t.Fatalf("another order: %s", diff)
		}
		if after, err := json.Marshal(r); err != nil || string(after) != string(before) {
			t.Fatalf("the request was changed: %v", err)
		}
		if d.Machine == "" {
			if d.Update != nil || d.Start || d.Reason == "" {
				t.Fatalf("%+v", d)
			}
			if !d.Wake.IsZero() && !d.Wake.After(r.Now) {
				t.Fatalf("wake %v is not after %v", d.Wake, r.Now)
			}
			return
		}
		for i := range r.Machines {
			vm := r.Machines[i].DeepCopy()
			if vm.Name != d.Machine {
				continue
			}
			if d.Update != nil {
				vm.Status.Assignment = d.Update.Assignment
			}
			if d.Start {
				vm.Spec.VM.State = spec.StateRunning
			}
			r.Machines[i] = *vm
		}
		if again := pool.Assign(r); again.Machine != d.Machine || again.Update != nil || again.Start {
			t.Fatalf("%+v, and again %+v", d, again)
		}
	})
}

func drawRequest(t *rapid.T) pool.Request {
	users := rapid.SampledFrom([]string{"ann", "bob", "eve"})
	poolNames := rapid.SampledFrom([]string{"students", "staff", "gone"})
	times := rapid.Custom(func(t *rapid.T) time.Time {
		return ago(time.Duration(rapid.IntRange(-5, 300).Draw(t, "minutes")) * time.Minute)
	})
	r := pool.Request{
		Namespace: "lab", Pool: poolNames.Draw(t, "pool"), User: pool.User{Name: users.Draw(t, "user"), Roles: []string{"student"}}, Now: noon,
		Pools: []spec.VmPool{
			newPool("students", rapid.SampledFrom([]string{"PT1h", "PT0S", "P1W", "2026-01-31T13:00:00Z", "2025-01-01T00:00:00Z", "", "x"}).Draw(t, "retention")),
			newPool("staff", "PT30M"),
		},
	}
	if rapid.Bool().Draw(t, "watch only") {
		r.Pools[0].Spec.Permissions[0].May = nil
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "machines") {
		vm := machine(string(rune('a'+i)), memberOf(rapid.SliceOfN(poolNames, 0, 2).Draw(t, "pools")...))
		if rapid.Bool().Draw(t, "assigned") {
			assigned(poolNames.Draw(t, "of pool"), users.Draw(t, "to"), times.Draw(t, "used"))(&vm)
		}
		if rapid.Bool().Draw(t, "running") {
			running(&vm)
		}
		switch rapid.IntRange(0, 3).Draw(t, "console") {
		case 0:
			connected(users.Draw(t, "user"), times.Draw(t, "at"))(&vm)
		case 1:
			disconnected(users.Draw(t, "user"), times.Draw(t, "at"))(&vm)
		}
		if rapid.IntRange(0, 9).Draw(t, "deleting") == 0 {
			deleting(&vm)
		}
		r.Machines = append(r.Machines, vm)
	}
	return r
}

func TestPatch(t *testing.T) {
	u := pool.Update{Namespace: "lab", Name: "a", UID: "u1", ResourceVersion: "17", Assignment: &spec.Assignment{Pool: "students", User: `"x"`, LastUsed: "2026-01-31T12:00:00Z"}}
	for _, c := range []struct {
		name string
		edit func(*pool.Update)
		want string
	}{
		{"assign", func(*pool.Update) {}, `{"metadata":{"resourceVersion":"17","uid":"u1"},"status":{"assignment":{"pool":"students","user":"\"x\"","lastUsed":"2026-01-31T12:00:00Z"}}}`},
		{"remove", func(u *pool.Update) { u.Assignment = nil }, `{"metadata":{"resourceVersion":"17","uid":"u1"},"status":{"assignment":null}}`},
		{"without a version", func(u *pool.Update) { u.ResourceVersion = "" }, ""},
	} {
		u := u
		c.edit(&u)
		got, err := u.Patch()
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

func TestExpires(t *testing.T) {
	all := []spec.VmPool{newPool("students", "PT1h"), newPool("odd", "x")}
	for _, c := range []struct {
		name string
		vm   spec.VirtualMachine
		want time.Time
	}{
		{"assigned", machine("a", assigned("students", "ann", noon)), noon.Add(time.Hour)},
		{"free", machine("a"), time.Time{}},
		{"of a deleted pool", machine("a", assigned("gone", "ann", noon)), time.Time{}},
		{"of an unreadable pool", machine("a", assigned("odd", "ann", noon)), time.Time{}},
	} {
		if got, ok := pool.Expires(&c.vm, all); !got.Equal(c.want) || ok == c.want.IsZero() {
			t.Errorf("%s: %v, %t", c.name, got, ok)
		}
	}
}

func TestLoginUser(t *testing.T) {
	login, quiet := newPool("students", "PT1h"), newPool("students", "PT1h")
	login.Spec.LoginOnAssignment = true
	other := newPool("staff", "PT1h")
	other.Spec.LoginOnAssignment = true
	named := func(vm *spec.VirtualMachine) { vm.Spec.VM.Display.LoggedInUser = "kiosk" }
	for _, c := range []struct {
		name string
		vm   spec.VirtualMachine
		pool *spec.VmPool
		want string
	}{
		{"nobody", machine("a"), nil, ""},
		{"the manifest's", machine("a", named), nil, "kiosk"},
		{"the assigned user", machine("a", named, assigned("students", "ann", noon)), &login, "ann"},
		{"not if the pool does not log in", machine("a", named, assigned("students", "ann", noon)), &quiet, "kiosk"},
		{"not by another pool", machine("a", named, assigned("students", "ann", noon)), &other, "kiosk"},
		{"not without an assignment", machine("a", named), &login, "kiosk"},
		{"nobody without a display", machine("a", func(vm *spec.VirtualMachine) { vm.Spec.VM.Display = nil }), &login, ""},
	} {
		if got := pool.LoginUser(&c.vm, c.pool); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestStartPatch(t *testing.T) {
	got, err := pool.StartPatch("7")
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"vm":{"state":"Running"}}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := pool.StartPatch(""); err == nil {
		t.Error("no error without a version")
	}
}

// Namespaces have nothing to do with each other.
func TestNamespacesAreApart(t *testing.T) {
	elsewhere := func(vm *spec.VirtualMachine) { vm.Namespace = "other" }
	theirs := newPool("students", "PT1h")
	theirs.Namespace = "other"
	machines := []spec.VirtualMachine{
		machine("a", elsewhere), machine("b", assigned("students", "ann", ago(20*time.Minute)), elsewhere),
		machine("c", assigned("students", "ann", ago(30*time.Minute))),
	}
	r := pool.Request{Namespace: "lab", Pool: "students", User: ann, Pools: []spec.VmPool{theirs, newPool("students", "PT1h")}, Machines: machines, Now: noon}
	if d := pool.Assign(r); d.Machine != "c" {
		t.Errorf("%+v", d)
	}
	if updates, _ := pool.Upkeep(machines, r.Pools, noon); len(updates) > 0 {
		t.Errorf("%+v", updates)
	}
	if updates, _ := pool.Upkeep(machines, []spec.VmPool{theirs}, noon); len(updates) != 1 || updates[0].Name != "c" {
		t.Errorf("%+v", updates)
	}
	r.Machines = machines[:2]
	if d := pool.Assign(r); d.Reason != pool.NoMachines {
		t.Errorf("%+v", d)
	}
}
