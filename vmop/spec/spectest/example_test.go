package spectest_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// A property of every valid machine, as a test of a program would check it.
func ExampleVirtualMachine() {
	var t *testing.T // the test's own
	property := func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	if t != nil {
		rapid.Check(t, property)
	}
}
