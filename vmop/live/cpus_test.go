package live_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"pgregory.net/rapid"
)

// Plugged CPUs take the slots that VM-Operator gave them where the configuration says
// so, and the first ones elsewhere; in both the highest slot is left first. It is
// VM-Operator's rule on QEMU's answer, which has the highest slot first: CPUs are
// plugged and unplugged in its order, and the boot processor stays.
func TestCPUOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 6
		order := rapid.SampledFrom([]string{"", runnerconfig.CPUOrderLowest, runnerconfig.CPUOrderHighest}).Draw(t, "order")
		plugged := make([]bool, slots) // beside the boot processor, which is at 0
		taken := 1
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			desired := rapid.IntRange(1, slots).Draw(t, "desired")
			c := runnerconfig.Config{}
			c.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: desired, CPUOrder: order}
			var observed []live.CPUSlot
			for i := range slots {
				s := live.CPUSlot{Driver: "x86_64-cpu", Props: map[string]int64{"core-id": int64(i)}}
				if i == 0 {
					s.QOMPath = "/machine/unattached/device[0]"
				} else if plugged[i] {
					s.QOMPath = "/machine/peripheral/" + qemucmd.CPUID(i)
				}
				observed = append(observed, s)
			}
			slices.Reverse(observed)
			out := live.Decide(live.Input{Config: &c, Generation: 1, Machine: live.Machine{Started: &c, KVM: true}, Observed: live.Observed{CPUs: observed}, Now: time.Unix(1, 0)})
			for _, s := range out.Steps {
				switch s := s.(type) {
				case live.PlugCPU:
					i := int(s.Props["core-id"])
					for other := 1; other < slots; other++ {
						better := other < i
						if order == runnerconfig.CPUOrderHighest {
							better = other > i
						}
						if better && !plugged[other] {
							t.Fatalf("slot %d is taken before %d: %v", i, other, plugged)
						}
					}
					plugged[i] = true
					taken++
				case live.UnplugCPU:
					i := slices.IndexFunc([]int{0, 1, 2, 3, 4, 5}, func(i int) bool { return qemucmd.CPUID(i) == s.ID })
					if slices.Contains(plugged[i+1:], true) {
						t.Fatalf("slot %d is left before a higher one: %v", i, plugged)
					}
					plugged[i] = false
					taken--
				}
			}
			if taken != desired {
				t.Fatalf("%d CPUs, want %d: %+v", taken, desired, out.Steps)
			}
		}
	})
}

// An emulating QEMU whose cache for translated code has no free region for another CPU
// would end when it is plugged: it waits for the next start, or for room. The texts are
// those of a QEMU 7.2, with which this was tried: of 4 regions it survived the second and
// the third CPU, and ended with the fourth.
func TestCPUsWaitForRoomInTheTranslationCache(t *testing.T) {
	const (
		half = "Translation buffer state:\ngen code size       1449539/4173824\nTB count            2432\n"
		full = "Translation buffer state:\ngen code size       3921427/4184064\nTB count            6955\n"
		much = "Translation buffer state:\ngen code size       23416371/134135808\nTB count            42273\n"
	)
	for _, c := range []struct {
		text                     string
		present, wanted, maximum int
		kvm, plugs               bool
	}{
		{half, 1, 2, 4, false, true},
		{half, 2, 3, 4, false, true},
		{half, 3, 4, 4, false, false},
		{half, 1, 4, 4, false, false},
		{half, 3, 4, 4, true, true},
		{full, 1, 2, 2, false, false},
		{much, 1, 2, 2, false, true},
		{strings.Replace(much, "23416371", "129416371", 1), 1, 2, 2, false, false},
		{"", 3, 4, 4, false, true},
		{"gen code size many", 3, 4, 4, false, true},
		{"gen code size 1/0", 3, 4, 4, false, true},
	} {
		config := runnerconfig.Config{}
		config.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: c.maximum, CurrentCPUs: c.wanted}
		var slots []live.CPUSlot
		for i := range c.maximum {
			s := live.CPUSlot{Driver: "x86_64-cpu", Props: map[string]int64{"core-id": int64(i)}}
			if i < c.present {
				s.QOMPath = "/machine/peripheral/" + qemucmd.CPUID(i)
			}
			slots = append(slots, s)
		}
		out := live.Decide(live.Input{
			Config: &config, Generation: 1, Machine: live.Machine{Started: &config, KVM: c.kvm},
			Observed: live.Observed{CPUs: slots, Translation: c.text}, Now: time.Unix(1, 0),
		})
		if plugs := slices.ContainsFunc(out.Steps, func(s live.Step) bool { _, is := s.(live.PlugCPU); return is }); plugs != c.plugs {
			t.Errorf("%+v: it plugs: %v", c, plugs)
		}
		for _, said := range out.Conditions {
			switch waits := strings.Contains(said.Message, "vm.currentCpus"); {
			case said.Type == live.CPUsAdjusted && (said.Reason == live.ReasonChangesWait) == c.plugs,
				said.Type == live.RestartRequired && waits == c.plugs:
				t.Errorf("%+v: %+v", c, said)
			}
		}
	}
}
