package live_test

import (
	"slices"
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
		for range rapid.IntRange(1, 5).Draw(t, "wishes") {
			wish := rapid.IntRange(1, slots).Draw(t, "wish")
			c := runnerconfig.Config{}
			c.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: wish, CPUOrder: order}
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
			if taken != wish {
				t.Fatalf("%d CPUs, want %d: %+v", taken, wish, out.Steps)
			}
		}
	})
}
