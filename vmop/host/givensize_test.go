package host

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
)

// A disk that was given keeps its size, whatever its manifest says, and that is told.
func TestSizesOfGivenDisks(t *testing.T) {
	load := func(size string) *spec.VirtualMachine {
		o, err := only(spec.Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumRam: 128Mi
    maximumCpus: 1
    disks: [{volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: `+size+`}}}}}]
`), spec.Options{Default: true, Validate: true}))
		if err != nil {
			t.Fatal(err)
		}
		return o.VirtualMachine
	}
	larger := load("32Mi")
	found := Changes(load("8Mi"), larger)
	keepSizes(found, larger, map[string]string{"other-disk": "/srv/other.img"})
	if len(found) != 1 || found[0].Applied != changes.AppliedLive {
		t.Errorf("%+v", found)
	}
	keepSizes(found, larger, map[string]string{"data-disk": "/srv/data.img"})
	if len(found) != 1 || found[0].Applied != changes.AppliedNever || !strings.Contains(found[0].Reason, "/srv/data.img") {
		t.Errorf("%+v", found)
	}
}
