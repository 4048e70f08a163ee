package live_test

import (
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func ExampleDecide() {
	config := &runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm", MaximumCPUs: 2, CurrentCPUs: 2}}}
	runnerconfig.Default(config)
	d := live.Decide(live.Input{
		Config:  config,
		Machine: live.Machine{Started: config, RAM: 1 << 30},
		Memory:  live.Start(config),
		Now:     time.Now(),
		Observed: live.Observed{
			RunState: "running",
			CPUs: []live.CPUSlot{
				{Driver: "host-x86_64-cpu", Props: map[string]int64{"core-id": 1}},
				{Driver: "host-x86_64-cpu", Props: map[string]int64{"core-id": 0}, QOMPath: "/machine/unattached/device[0]"},
			},
		},
	})
	for _, step := range d.Steps {
		fmt.Printf("%T %+v\n", step, step)
	}
	fmt.Println(d.Conditions[0].Message)
	// Output:
	// live.PlugCPU {ID:cpu-1 Driver:host-x86_64-cpu Props:map[core-id:1]}
	// adding CPUs: there are 1, 2 are wanted
}
