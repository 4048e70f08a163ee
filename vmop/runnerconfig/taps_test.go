package runnerconfig_test

import (
	"reflect"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
	"pgregory.net/rapid"
)

func TestTapsAreReadAsTheyWereWritten(t *testing.T) {
	name := rapid.StringMatching(`[!-.0-9;-~]{1,15}`)
	rapid.Check(t, func(t *rapid.T) {
		taps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) runnerconfig.PreparedTap {
			return runnerconfig.PreparedTap{
				Network: rapid.IntRange(0, 99).Draw(t, "network"), Queues: rapid.IntRange(1, 8).Draw(t, "queues"),
				Name: name.Draw(t, "name"), Bridge: name.Draw(t, "bridge"),
			}
		}), 1, 4).Draw(t, "taps")
		got, err := runnerconfig.ParseTaps(runnerconfig.FormatTaps(taps))
		if err != nil || !reflect.DeepEqual(got, taps) {
			t.Fatalf("%+v became %+v, %v", taps, got, err)
		}
	})
	for _, bad := range []string{"0", "0:a:b", "x:a:b:1", "0:a:b:0", "-1:a:b:1", "0::b:1", "0:a:b:1:2"} {
		if taps, err := runnerconfig.ParseTaps(bad); err == nil {
			t.Errorf("%q gives %+v", bad, taps)
		}
	}
}

func TestTapQueues(t *testing.T) {
	for _, c := range []struct {
		device        string
		maximum, want int
	}{{"", 0, 1}, {"virtio-net", 4, 4}, {"virtio-net-pci", 64, 8}, {"e1000e", 4, 1}} {
		vm := runnerconfig.VM{MaximumCPUs: c.maximum, Network: []runnerconfig.Network{{Device: c.device}}}
		if got := vm.TapQueues(0); got != c.want {
			t.Errorf("%q with %d CPUs: %d, want %d", c.device, c.maximum, got, c.want)
		}
	}
}
