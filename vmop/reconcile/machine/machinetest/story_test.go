package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"pgregory.net/rapid"
)

// TestStories plays the scripts in testdata/story. Each is an archive with what
// happens and with what was decided then, to be read by people.
func TestStories(t *testing.T) {
	fixture.Stories(t, func(_ *testing.T, script string) (string, error) { return Play(machine.Decide, script) })
}

// A script that says what nobody understands fails.
func TestUnknownWordsOfStories(t *testing.T) {
	for _, line := range []string{
		"reconsile", "reconcile twice", "reconcile seeing-the-machine-of yesterday", "waits", "waits are-told", "api-server sleeps", "api-server refuses", "operator", "operator is-late", "wait", "wait a while", "kubelet", "kubelet schedule sometimes", "runner", "runner ends", "runner ends GuestShutdown",
		"runner reports twice", "volumes are-late", "claim web-system-disk", "claim web-system-disk is-lost", "secret web-init is-made", "class small is-made",
		"class small is-made big", "garbage-collector now", "node-dies", "vm-operator 3.3", "person", "person sleeps", "person sets-policy Never",
		"person asks-for nothing", "person sets-image", "person labels app", "person sets-timeout soon", "person starts web", "person wants-nodes ssd",
	} {
		if _, err := Play(machine.Decide, line); err == nil || err.Error() != "unknown: "+line {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// So does one about what is not there, or in which a promise is broken. What was told
// until then is told.
func TestStoriesThatCannotBe(t *testing.T) {
	hasty := func(s machine.Snapshot) reconcile.Plan {
		p := machine.Decide(s)
		p.Wake = s.Now
		return p
	}
	for _, c := range []struct {
		decide            func(machine.Snapshot) reconcile.Plan
		story, told, want string
	}{
		{machine.Decide, "kubelet start", "03:04:05 > kubelet start\n", "kubelet start: there is no pod/web"},
		{machine.Decide, "reconcile seeing-the-machine-of 03:04:04", "03:04:05 > reconcile seeing-the-machine-of 03:04:04\n", "reconcile seeing-the-machine-of 03:04:04: there was no machine at 03:04:04"},
		{machine.Decide, "claim mine is-deleted", "03:04:05 > claim mine is-deleted\n", "claim mine is-deleted: there is no claim/mine"},
		{machine.Decide, "wait 9999999999999h", "03:04:05 > wait 9999999999999h\n", "wait 9999999999999h: time: invalid duration"},
		{hasty, "reconcile", "03:04:05 > reconcile\n", "reconcile: a wake-up is in the future"},
	} {
		if told, err := Play(c.decide, c.story); told != c.told || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, told:\n%s", c.story, err, told)
		}
	}
}

// Whatever a script says in whichever order, it is played, or the first line that cannot
// be is named.
func TestAnyStory(t *testing.T) {
	lines := []string{
		"reconcile", "reconcile seeing-the-machine-of 03:04:45", "waits are-read", "api-server refuses ConfigMap", "api-server refuses Pod", "api-server takes ConfigMap", "operator is-replaced", "wait 40s", "wait 11m", "kubelet schedule", "kubelet start", "kubelet removes", "kubelet unschedulable pull-error", "kubelet evict",
		"runner reports", "runner ends guest-shutdown", "runner ends qemu-failure", "volumes are-awaited", "volumes are-made",
		"claim web-system-disk is-deleted", "claim web-system-disk is-restored", "secret a is-deleted", "secret a has-type t", "class small is-made 2", "class small is-deleted",
		"garbage-collector", "node-dies n1", "node-lives n1", "vm-operator", "vm-operator 3.4", "person starts", "person stops", "person sets-cpus", "person shrinks", "person grows",
		"person breaks", "person approves-restarts", "person deletes-pod", "person deletes-machine", "person orphans-pod", "person makes-machine-again", "person forces-stop",
		"person wants-new-disks", "person asks-for-reset", "person asks-for restart", "person sets-policy Manual", "person labels a=b", "person sets-timeout 5",
		"person provisions-by a", "person names-class small", "person sets-image i", "person wants-nodes a=b", "person wants-to-be-with a=b", "person wants-to-be-apart-from a=b",
	}
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SliceOfN(rapid.SampledFrom(lines), 1, 20).Draw(t, "lines")
		told, err := Play(machine.Decide, strings.Join(script, "\n"))
		n := strings.Count(told, " > ")
		if n == 0 || err == nil && n != len(script) || err != nil && !strings.HasPrefix(err.Error(), script[n-1]+": ") {
			t.Fatalf("%v after\n%s", err, told)
		}
	})
}
