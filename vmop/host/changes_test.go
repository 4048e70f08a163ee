package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/spec"
)

// The names of two machines are no difference between them: a clone is its original.
func TestChangesPassOverNames(t *testing.T) {
	web := spec.NewVirtualMachine("shop", "web")
	web.Spec.VM.MaximumCPUs = new(int32(2))
	clone := web.DeepCopy()
	clone.Namespace, clone.Name = "test", "web-2"
	if got := Changes(web, clone); len(got) != 0 {
		t.Errorf("%v", got)
	}
	clone.Spec.VM.MaximumCPUs = new(int32(4))
	other := clone.DeepCopy()
	other.Namespace, other.Name = web.Namespace, web.Name
	if diff := cmp.Diff(Changes(web, other), Changes(web, clone)); diff != "" || len(Changes(web, clone)) != 1 {
		t.Errorf("another name makes another difference (-want +got)\n%s", diff)
	}
	if got := Changes(nil, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
