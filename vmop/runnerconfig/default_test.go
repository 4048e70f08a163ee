package runnerconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// What a caller handed over stays as it was, however deep it is.
func TestDefaultedLeavesItsArgument(t *testing.T) {
	incomplete := func() runnerconfig.Config {
		var c runnerconfig.Config
		c.Runner.VM = runnerconfig.VM{
			Name: "vm", Network: []runnerconfig.Network{{}}, Drives: []runnerconfig.Drive{{}},
			Display: &runnerconfig.Display{SPICE: &runnerconfig.SPICE{}, VNC: &runnerconfig.VNC{}},
		}
		return c
	}
	c := incomplete()
	got := runnerconfig.Defaulted(c)
	if diff := cmp.Diff(incomplete(), c); diff != "" {
		t.Errorf("the argument changed: %s", diff)
	}
	want := incomplete()
	runnerconfig.Default(&want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not what Default makes: %s", diff)
	}
}
