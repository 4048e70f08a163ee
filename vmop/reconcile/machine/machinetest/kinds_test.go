package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
)

// A decision that panics keeps no promise: it is no world's business to recover.
func TestNoWorldHidesAPanic(t *testing.T) {
	for i := range worldKinds {
		k := &worldKinds[i]
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nobody notices", k.name)
				}
			}()
			w := k.create(random(1), func(machine.Snapshot) reconcile.Plan { panic("a fault") })
			if err := k.run(w, k.least); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
		}()
	}
}
