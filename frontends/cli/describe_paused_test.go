package main

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/live"
)

// A machine whose disk is full is not resumed before there is room.
func TestNextOfAPausedMachine(t *testing.T) {
	command := func(verb string) string { return "vmop-cli " + verb + " web" }
	m := &host.Machine{Status: host.StatusPaused}
	if got := hostNext(m, command); got != "vmop-cli resume web" {
		t.Errorf("paused by somebody: %q", got)
	}
	m.State.Conditions = []live.Condition{{Type: live.GuestExecuting, Status: live.False, Reason: live.ReasonDiskFull, Message: "no space for data"}}
	if got := hostNext(m, command); !strings.HasPrefix(got, "make room ") || !strings.Contains(got, "vmop-cli resume web") {
		t.Errorf("its disk is full: %q", got)
	}
}
