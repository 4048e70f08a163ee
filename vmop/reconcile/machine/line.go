package machine

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// line is how long the message of a condition is to be, in bytes: kubectl has one line for it.
const line = 200

// listed joins as much of what there is to say as a line has room for, beside so many other
// bytes, and says how much it leaves out. The first text is always there.
func listed(texts []string, beside int) (told string, left []string) {
	const andMore = "; and %d more"
	told, left = texts[0], texts[1:]
	for room := line - beside - len(andMore); len(left) > 0; left = left[1:] {
		if len(told)+len("; ")+len(left[0]) > room {
			return told + fmt.Sprintf(andMore, len(left)), left
		}
		told += "; " + left[0]
	}
	return told, nil
}

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
	told, _ := listed(textsOf(errs), 80)
	return told
}

// after is what an event says besides a message that had no room for it.
func after(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return ": " + strings.Join(left, "; ")
}
