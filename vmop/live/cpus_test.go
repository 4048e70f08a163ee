package live_test

import (
	"fmt"
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
		{half, 2, 3, 4, false, false}, // one may fill meanwhile
		{half, 3, 4, 4, false, false},
		{half, 1, 4, 4, false, true}, // not all of them
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
		out := live.Decide(live.Input{
			Config: &config, Generation: 1, Machine: live.Machine{Started: &config, KVM: c.kvm},
			Observed: live.Observed{CPUs: cpuSlots(c.maximum, c.present), Translation: c.text}, Now: time.Unix(1, 0),
		})
		if plugs := slices.ContainsFunc(out.Steps, func(s live.Step) bool { _, is := s.(live.PlugCPU); return is }); plugs != c.plugs {
			t.Errorf("%+v: it plugs: %v", c, plugs)
		}
	}
}

// An emulated machine gets as many of the wanted CPUs as there is room for the code of,
// never one more, and says so where these are not all.
func TestCPUsComeAsFarAsThereIsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const mebibyte = 1 << 20
		slots := rapid.IntRange(1, 12).Draw(t, "slots")
		present := rapid.IntRange(1, slots).Draw(t, "present")
		wanted := rapid.IntRange(present, slots+2).Draw(t, "wanted")
		kvm := rapid.IntRange(0, 3).Draw(t, "kvm") == 0
		size := rapid.OneOf(rapid.IntRange(1, 64*mebibyte), rapid.SampledFrom([]int{4173824, 8 * mebibyte, 134135808})).Draw(t, "size")
		used := rapid.IntRange(0, size).Draw(t, "used")
		text := fmt.Sprintf("Translation buffer state:\ngen code size       %d/%d\nTB count            2432\n", used, size)
		understood := rapid.IntRange(0, 3).Draw(t, "understood") > 0
		if !understood {
			text = rapid.SampledFrom([]string{"", "gen code size many", "gen code size 1/0", "gen code size -3"}).Draw(t, "text")
		}
		// There is a region for each processor, or of at least 2 MiB there are more, but 8
		// for each at most. As many as fit into what is used may be full, and one
		// fills meanwhile.
		regions := max(slots, min(size/(2*mebibyte), 8*slots))
		hasRoom := func(cpus int) bool { return kvm || !understood || (used*regions+size-1)/size+cpus <= regions }
		want := present
		for n := present + 1; n <= min(wanted, slots); n++ {
			if hasRoom(n) {
				want = n
			}
		}

		config := runnerconfig.Config{}
		config.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: wanted}
		var memory live.Memory
		after := present
		for {
			out := live.Decide(live.Input{
				Config: &config, Generation: 1, Machine: live.Machine{Started: &config, KVM: kvm}, Memory: memory,
				Observed: live.Observed{CPUs: cpuSlots(slots, after), Translation: text}, Now: time.Unix(1, 0),
			})
			memory = out.Memory
			plugged := 0
			for _, s := range out.Steps {
				if _, is := s.(live.PlugCPU); is {
					plugged++
				}
			}
			if plugged > 1 && !kvm {
				t.Fatalf("%d CPUs are plugged after one look at the cache", plugged)
			}
			lacks := want < min(wanted, slots)
			for _, said := range out.Conditions {
				switch said.Type {
				case live.CPUsAdjusted:
					if (said.Reason == live.ReasonChangesWait) != lacks {
						t.Fatalf("%d of %d CPUs come: %+v", want, wanted, said)
					}
					if told := fmt.Sprintf("there are %d CPUs, %d are wanted", after, wanted); lacks && !strings.Contains(said.Message, told) {
						t.Fatalf("it does not say that %s: %q", told, said.Message)
					}
				case live.RestartRequired:
					if strings.Contains(said.Message, "vm.currentCpus") != lacks {
						t.Fatalf("%d of %d CPUs come: %+v", want, wanted, said)
					}
				}
			}
			if plugged == 0 {
				break
			}
			after += plugged
		}
		if after != want {
			t.Fatalf("%d CPUs come, want %d", after, want)
		}
	})
}

// cpuSlots are the places of a machine with that many processors.
func cpuSlots(all, present int) []live.CPUSlot {
	var out []live.CPUSlot
	for i := range all {
		s := live.CPUSlot{Driver: "x86_64-cpu", Props: map[string]int64{"core-id": int64(i)}}
		if i < present {
			s.QOMPath = "/machine/peripheral/" + qemucmd.CPUID(i)
		}
		out = append(out, s)
	}
	return out
}

// The cache fills and is emptied while a machine grows: no processor is given up for how
// many came before it, and a QEMU that refuses is not asked for ever.
func TestGrowingCPUByCPUIsNotGivenUp(t *testing.T) {
	const slots = 12
	for _, problem := range []string{"", "QEMU refuses"} {
		config := runnerconfig.Config{}
		config.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: slots}
		present, asked := 1, 0
		var memory live.Memory
		for round := range 10 * slots {
			// There is room for one more, or for two: of 12 regions the others are full.
			room := min(present+1+round%2, slots)
			text := fmt.Sprintf("gen code size %d/%d", slots-room, slots)
			out := live.Decide(live.Input{
				Config: &config, Generation: 1, Machine: live.Machine{Started: &config}, Memory: memory,
				Observed: live.Observed{CPUs: cpuSlots(slots, present), Translation: text}, Now: time.Unix(int64(round)*3600, 0),
			})
			memory = out.Memory
			for _, s := range out.Steps {
				if _, is := s.(live.PlugCPU); !is {
					continue
				}
				memory = memory.Result(s, problem)
				if asked++; problem == "" {
					present++
				}
			}
		}
		if problem == "" && present != slots {
			t.Errorf("%d CPUs of %d came", present, slots)
		}
		if problem != "" && asked > 5 {
			t.Errorf("QEMU, which refuses, was asked %d times", asked)
		}
	}
}
