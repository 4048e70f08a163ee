package qemucmd_test

import (
	"path"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// TestTableKnowsWhatCommandsNeed: what any machine's command has beside QEMU is
// in the table, from which others know what to remove and what to wait for.
func TestTableKnowsWhatCommandsNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cmd := mustBuild(t, machine(t, imagined()), qemucmd.GenericHost())
		for _, s := range cmd.Sockets {
			if name := s.Purpose.FileName(); name == "" || !slices.Contains(qemucmd.RuntimeFiles(), name) && !slices.Contains(qemucmd.RuntimeFiles(), name+"0") {
				t.Errorf("%s has the file %q", s.Purpose, name)
			}
		}
		for _, h := range cmd.Helpers {
			if !slices.Contains(qemucmd.HelperNames(), h.Name) || path.Base(h.Executable) != h.Name {
				t.Errorf("helper %s is %s", h.Name, h.Executable)
			}
		}
		for _, o := range slices.Concat(cmd.Group("channels"), cmd.Group("spice")) {
			if o.Head == "virtserialport" && !slices.ContainsFunc(qemucmd.Agents(), func(a qemucmd.Agent) bool { return a.Channel == o.ID }) {
				t.Errorf("nothing is known of the channel %s", o.ID)
			}
		}
	})
}

func TestSharedSockets(t *testing.T) {
	for _, p := range qemucmd.SocketPurposes() {
		own := p == qemucmd.SocketMonitor || p == qemucmd.SocketSerial || p == qemucmd.SocketTPM || p == qemucmd.SocketShare
		if p.Shared() == own {
			t.Errorf("%s: shared %v", p, p.Shared())
		}
	}
}
