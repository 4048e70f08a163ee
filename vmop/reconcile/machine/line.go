package machine

import (
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// textsOf are the errors as they are told one by one.
func textsOf(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs.ToAggregate().Errors() {
		out = append(out, err.Error())
	}
	return out
}

// few are those of the errors that a line has room for which names an object, too.
func few(errs field.ErrorList) string {
	told, _ := conditions.List(textsOf(errs), "; ", 80)
	return told
}

// after is what an event says besides a message that had no room for it.
func after(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return ": " + strings.Join(left, "; ")
}
