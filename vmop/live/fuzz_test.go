package live_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// observed is what QEMU, or a guest through it, may say.
type observed struct {
	live.Observed
	Display live.DisplaySecret
	Power   live.Power
}

// Whatever QEMU tells of a machine: the decision is the same each time, in proportion
// to what was told, has each condition once, and does to the machine only what is for
// its own devices. Carried out without success it comes to an end.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{}`), 0)
	f.Add([]byte(`{"CPUs":[{"Driver":"d","Props":{"core-id":1}},{"Driver":"d","QOMPath":"/machine/unattached/device[0]"}],"Balloon":1,"RunState":"running"}`),
		[]byte(`{"vm":{"currentCpus":2,"maximumCpus":4,"currentRam":"64 MiB"}}`), 1)
	f.Add([]byte(`{"Drives":[{"ID":"cd0","Locked":true,"Medium":"/a"},{"ID":"cd0"},{"ID":"cd9","TrayOpen":true}],"Disks":[{"ID":"disk0","Node":"n","Size":-1}],"Resets":-5}`),
		[]byte(`{"guestResetEnds":true,"resetCounter":3,"vm":{"drives":[{"type":"ide-cd","file":"/b"},{"type":"ide-cd","file":"http://h/b"},{"type":"raw","file":"/d","size":"1 GiB"}]}}`), 2)
	f.Add([]byte(`{"RunState":"io-error","IOError":{"Device":"disk0","Reason":"x","NoSpace":true,"Free":-1},"Display":{"Password":"a","Expiry":"+3","Long":true},"Power":{"Number":1,"Pause":true}}`),
		[]byte(`{"vm":{"display":{"spice":{"port":5900}}}}`), 3)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, told, wanted []byte, generation int) {
		var o observed
		var c runnerconfig.Config
		if json.Unmarshal(told, &o) != nil || json.Unmarshal(wanted, &c.Runner) != nil {
			return
		}
		c.Runner.VM.Name = "x"
		if c.Runner.VM.MaximumRAM == 0 {
			c.Runner.VM.MaximumRAM = 128 << 20
		}
		c = runnerconfig.Defaulted(c)
		if runnerconfig.Validate(&c) != nil {
			return
		}
		started := runnerconfig.Defaulted(runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "x", MaximumRAM: 128 << 20}}})
		in := live.Input{
			Config: &c, Generation: generation, Machine: live.Machine{Started: &started, RAM: 128 << 20, KVM: true, GrowsDisks: true, HTTPImages: true, Ticketing: true},
			Display: o.Display, Power: o.Power, Observed: o.Observed, Memory: live.Start(&started), Now: now,
		}
		size := len(told) + len(wanted)
		const rounds = 200
		for round := 0; ; round++ {
			d := live.Decide(in)
			if again := live.Decide(in); !reflect.DeepEqual(d, again) {
				t.Fatalf("%+v, and once more %+v", d, again)
			}
			types, text := map[string]bool{}, 0
			for _, c := range d.Conditions {
				if types[string(c.Type)] {
					t.Fatalf("two conditions %s", c.Type)
				}
				types[string(c.Type)] = true
				text += len(c.Message)
			}
			if text > 20*size+4000 {
				t.Fatalf("messages of %d bytes for %d", text, size)
			}
			if most := size + 10; len(d.Steps) > most {
				t.Fatalf("%d steps for %d bytes", len(d.Steps), size)
			}
			for _, s := range d.Steps {
				if m, ok := s.(live.ChangeMedium); ok && !strings.HasPrefix(m.File, "/") && !strings.HasPrefix(m.File, "./") && !strings.HasPrefix(m.File, "http") {
					t.Fatalf("QEMU takes %q for a protocol's name", m.File)
				}
				if g, ok := s.(live.GrowDisk); ok && g.Bytes <= 0 {
					t.Fatalf("%+v", g)
				}
			}
			if len(d.Steps) == 0 {
				return
			}
			if round == rounds {
				t.Fatalf("it goes on for ever: %+v", d.Steps)
			}
			in.Memory = d.Memory
			for _, s := range d.Steps {
				in.Memory = in.Memory.Result(s, "no")
			}
		}
	})
}
