package operationtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/operation"
)

// TestStories plays the scripts in testdata/story. Each is an archive with what
// happens and with what was decided then, to be read by people.
func TestStories(t *testing.T) {
	fixture.Stories(t, func(_ *testing.T, script string) (string, error) { return Play(operation.Decide, script) })
}

// A script that says what nobody understands, or names what is not there, fails.
func TestUnknownWordsOfStories(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"machine a is Happy", "unknown: machine a is Happy"},
		{"machine a is Running with policy", "unknown: machine a is Running with policy"},
		{"reconcile twice", "unknown: reconcile twice"},
		{"person asks x: Reboot of a", "unknown: person asks x: Reboot of a"},
		{"person asks x: Stop of a gently", "unknown: person asks x: Stop of a gently"},
		{"wait long", "unknown: wait long"},
		{"machine a goes on", "machine a goes on: there is no machine a"},
		{"person deletes x", "person deletes x: there is no operation x"},
	} {
		if _, err := Play(operation.Decide, c.script); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v, want %s", c.script, err, c.want)
		}
	}
}

// So does one in which a promise is broken.
func TestStoriesOfBrokenPromises(t *testing.T) {
	rude := func(s operation.Snapshot) reconcile.Plan {
		return reconcile.Plan{Actions: []reconcile.Action{reconcile.DeletePod{Name: s.Pod.Name, UID: s.Pod.UID}}}
	}
	if told, err := Play(rude, "machine a is Running\nreconcile"); fmt.Sprint(err) != "reconcile: nothing else is written: delete Pod a" || !strings.Contains(told, "machine a is Running") {
		t.Errorf("%v, told:\n%s", err, told)
	}
}
