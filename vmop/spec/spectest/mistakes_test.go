package spectest_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/kindtest"
	"github.com/vmop/sdk/vmop/spec"
)

// One mistake in what is drawn is found, whatever stands beside it, and told with the
// path of its field.
func TestOneMistakeIsFoundInWhatIsDrawn(t *testing.T) {
	for _, k := range kindtest.Kinds(t) {
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				drawn := k.Draw.Draw(t, k.Name)
				for _, m := range k.Mistakes {
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
