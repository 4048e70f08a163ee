package spectest_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/specmistakes"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// One mistake in what is drawn is found, whatever stands beside it, and told with the
// path of its field.
func TestOneMistakeIsFoundInWhatIsDrawn(t *testing.T) {
	for _, k := range spec.Kinds() {
		mistakes := specmistakes.Of(k.Name)
		if len(mistakes) == 0 && k.Name != spec.KindVirtualMachine {
			t.Errorf("there are no mistakes in a %s", k.Name)
		}
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				drawn := spectest.Objects(k.Name).Draw(t, k.Name)
				for _, m := range mistakes {
					mistaken := drawn.DeepCopyObject().(spec.TypedObject)
					path := m.Make(mistaken)
					errs := k.Validate(mistaken)
					if !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == path }) {
						t.Fatalf("%s: nothing is said of %s: %v", m.What, path, errs.ToAggregate())
					}
				}
			})
		})
	}
}
