// Package live decides which steps bring a running machine to its configuration without a
// restart.
//
// [Decide] takes the wanted configuration, what QEMU reported, and the memory of
// the previous decisions. It returns the steps that are missing now, the memory for
// the next call, conditions that report how far the machine is as configured, and
// when to decide again if no event comes first. The caller executes the steps,
// records each result by [Memory.Result], observes and decides again:
//
//	for {
//		d := live.Decide(live.Input{Config: &cfg, Observed: observe(), Memory: memory, ...})
//		memory = d.Memory
//		for _, step := range d.Steps {
//			memory = memory.Result(step, execute(step))
//		}
//		if len(d.Steps) == 0 {
//			wait(d.Wake) // or for an event
//		}
//	}
//
// Guests answer late, refuse, or do nothing. A step is therefore repeated with
// growing pauses, but only a few times; then a condition reports what was not
// reached and why, and nothing more happens until the configuration changes. A part
// that is stuck never delays another one. The boot processor is never unplugged, in
// software emulation none is (see [UnplugCPU]), a medium that the guest ejected is
// not inserted again, and a machine that is as configured gets no steps and no time
// for the next decision.
//
// The package is pure: the clock reading is an argument, secrets appear as
// digests only.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package live
