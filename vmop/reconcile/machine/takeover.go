package machine

import (
	"strconv"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// takesOver reports whether files of the machine may still be those of
// VM-Operator's runner, which was root: until a pod has given them to the runner's
// user.
//
// The ConfigMap remembers it. VM-Operator takes back what vmop has added to it when
// it writes it, so that what it writes after the way back is taken over once more.
func (d *decision) takesOver() bool {
	return d.s.Settings.TakeOverData && d.origin == machineconfig.OriginVMOperator && d.remembered().dataOwner != strconv.Itoa(objects.RunnerUser)
}
