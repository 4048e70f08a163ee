package live_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The machine gets the USB devices that it is to have, the others of the host's leave it,
// and no other device is touched. What QEMU refuses is told, and not tried for ever.
func TestUSBDevicesFollow(t *testing.T) {
	all := []runnerconfig.USBDevice{{Vendor: "0951", Product: "1666"}, {Vendor: "046d", Product: "c31c"}, {Vendor: "ffff", Product: "000f"}, {Vendor: "1209", Product: "0001"}}
	id := func(u runnerconfig.USBDevice) string { return qemucmd.USBDeviceID(u.Vendor, u.Product) }
	some := func(t *rapid.T, label string) (out []runnerconfig.USBDevice) {
		for _, u := range all {
			if rapid.Bool().Draw(t, label) {
				out = append(out, u)
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		started, wanted := config(1, 0, 7), config(1, 0, 7)
		started.Runner.VM.USBDevices, wanted.Runner.VM.USBDevices = some(t, "started with"), some(t, "wanted")
		has := []string{"tablet0", "redir0", "usb"}
		for _, u := range some(t, "has") {
			has = append(has, id(u))
		}
		refused := map[string]bool{}
		for _, u := range some(t, "refused") {
			refused[id(u)] = true
		}
		in := live.Input{
			Config: wanted, Machine: live.Machine{Started: started, RAM: ram},
			Memory: live.Start(started), Observed: live.Observed{RunState: "running"}, Now: time.Unix(1_800_000_000, 0),
		}
		var d live.Decision
		settled := false
		for range 200 {
			in.Observed.USBDevices = slices.Clone(has)
			d = live.Decide(in)
			in.Memory = d.Memory
			asked := false
			for _, s := range d.Steps {
				problem := ""
				switch s := s.(type) {
				case live.PlugUSBDevice:
					asked = true
					if slices.Contains(has, s.ID) || s.ID != id(runnerconfig.USBDevice{Vendor: fmt.Sprintf("%04x", s.Vendor), Product: fmt.Sprintf("%04x", s.Product)}) {
						t.Fatalf("%+v, there are %q", s, has)
					}
					if refused[s.ID] {
						problem = "refused by the model"
					} else {
						has = append(has, s.ID)
					}
				case live.UnplugUSBDevice:
					asked = true
					if !slices.Contains(has, s.ID) || !qemucmd.IsUSBDevice(s.ID) {
						t.Fatalf("%+v, there are %q", s, has)
					}
					if refused[s.ID] {
						problem = "refused by the model"
					} else {
						has = slices.DeleteFunc(has, func(id string) bool { return id == s.ID })
					}
				default:
					continue
				}
				in.Memory = in.Memory.Result(s, problem)
			}
			if !asked {
				if settled = d.Wake.IsZero(); settled {
					break
				}
				in.Now = d.Wake
			}
		}
		if !settled {
			t.Fatalf("it goes on for ever: %+v", d)
		}
		if !slices.Equal(has[:3], []string{"tablet0", "redir0", "usb"}) {
			t.Fatalf("other devices are gone: %q", has)
		}
		right, there := true, len(wanted.Runner.VM.USBDevices) > 0
		for _, u := range all {
			want, is := slices.Contains(wanted.Runner.VM.USBDevices, u), slices.Contains(has, id(u))
			if want != is && !refused[id(u)] {
				t.Errorf("%s: wanted %v, there %v", id(u), want, is)
			}
			right, there = right && want == is, there || is
		}
		i := slices.IndexFunc(d.Conditions, func(c live.Condition) bool { return c.Type == live.USBDevicesAttached })
		if (i >= 0) != there {
			t.Fatalf("a condition: %v, devices: %v", i >= 0, there)
		}
		if i >= 0 && (d.Conditions[i].Status == live.True) != right {
			t.Errorf("%+v, as wanted: %v", d.Conditions[i], right)
		}
		for _, p := range live.RestartPaths(started, wanted) {
			t.Errorf("%s waits for a restart", p)
		}
	})
}
