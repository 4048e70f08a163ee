package house

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/live"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/vmopagent"
)

// The runner must not import the API's types, so that the names that both use are
// spelled in both.
func TestNamesOfConditionsAgree(t *testing.T) {
	for _, pair := range [][2]string{
		{live.Running, spec.ConditionRunning},
		{live.Booted, spec.ConditionBooted},
		{live.VmopAgentConnected, spec.ConditionVmopAgentConnected},
		{live.UserLoggedIn, spec.ConditionUserLoggedIn},
		{live.ConsoleConnected, spec.ConditionConsoleConnected},
		{live.ReasonRunnerStarted, spec.ReasonRunnerStarted},
		{live.ReasonVMStarted, spec.ReasonVMStarted},
		{live.ReasonVMBooted, spec.ReasonVMBooted},
		{live.ReasonVMTerminating, spec.ReasonVMTerminating},
		{live.ReasonVMStopped, spec.ReasonVMStopped},
		{live.ReasonVmopAgentStarted, spec.ReasonVmopAgentStarted},
		{live.ReasonVmopAgentDisconnected, spec.ReasonVmopAgentDisconnected},
		{live.ReasonNotRequested, spec.ReasonNotRequested},
		{live.ReasonProcessing, spec.ReasonProcessing},
		{live.ReasonLoggedIn, spec.ReasonLoggedIn},
		{live.ReasonConnected, spec.ReasonConnected},
		{live.ReasonDisconnected, spec.ReasonDisconnected},
		{string(vmopagent.ReasonNotRequested), spec.ReasonNotRequested},
		{string(vmopagent.ReasonDisconnected), spec.ReasonVmopAgentDisconnected},
		{string(vmopagent.ReasonProcessing), spec.ReasonProcessing},
		{string(vmopagent.ReasonLoggedIn), spec.ReasonLoggedIn},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q and %q", pair[0], pair[1])
		}
	}
}
