package host

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
)

// A guest that is shutting down is not hurried by somebody who asks for the same once
// more; who does not want to wait for it is understood at once, by signals that cannot
// become one.
func TestStopRequests(t *testing.T) {
	running, ending := runner.State{Phase: runner.PhaseBooting}, runner.State{Phase: runner.PhaseTerminating}
	quick := func(s runner.State) runner.State { s.QuitSignal = true; return s }
	for _, tt := range []struct {
		name  string
		state runner.State
		now   bool
		want  []unix.Signal
	}{
		{"a running machine", quick(running), false, []unix.Signal{unix.SIGTERM}},
		{"one that shuts down", quick(ending), false, nil},
		{"a running one, now", quick(running), true, []unix.Signal{unix.SIGQUIT}},
		{"one that shuts down, now", quick(ending), true, []unix.Signal{unix.SIGQUIT}},
		{"one of an older runner", running, false, []unix.Signal{unix.SIGTERM}},
		{"one of an older runner that shuts down", ending, false, nil},
		{"one of an older runner, now", running, true, []unix.Signal{unix.SIGTERM, unix.SIGTERM}},
		{"one of an older runner that shuts down, now", ending, true, []unix.Signal{unix.SIGTERM}},
		{"a machine that starts, whose state is not known yet", runner.State{}, false, []unix.Signal{unix.SIGTERM}},
	} {
		if got := stopRequests(tt.state, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
