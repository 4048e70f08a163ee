package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
)

// TestStories plays the scripts in testdata/story. Each is an archive with what
// happens and with what was decided then, to be read by people.
func TestStories(t *testing.T) { fixture.Stories(t, play) }

// A script that says what nobody understands fails.
func TestUnknownWordsOfStories(t *testing.T) {
	for _, line := range []string{
		"reconsile", "reconcile twice", "wait", "wait a while", "kubelet", "kubelet schedule sometimes", "runner", "runner ends", "runner ends GuestShutdown",
		"runner reports twice", "volumes are-late", "claim web-system-disk", "claim web-system-disk is-lost", "secret web-init is-made", "class small is-made",
		"class small is-made big", "garbage-collector now", "node-dies", "vm-operator 3.3", "person", "person sleeps", "person sets-policy Never",
		"person asks-for nothing", "person sets-image", "person labels app", "person sets-timeout soon", "person starts web", "person wants-nodes ssd",
	} {
		if _, err := play(t, line); err == nil || err.Error() != "unknown: "+line {
			t.Errorf("%s: %v", line, err)
		}
	}
}
