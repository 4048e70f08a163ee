package runnerconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type validator struct{ errs []error }

func (v *validator) add(path, format string, args ...any) {
	v.errs = append(v.errs, &Error{Path: path, Reason: fmt.Sprintf(format, args...)})
}

func (v *validator) name(path, s string) {
	switch {
	case s == "":
		v.add(path, "is missing")
	case s == "." || s == ".." || strings.ContainsRune(s, '/') || strings.ContainsFunc(s, unicode.IsControl):
		v.add(path, "%q cannot be a machine's name: want one without slashes and control characters", s)
	case len(s) > 253:
		v.add(path, "is %d bytes long: want at most 253", len(s))
	}
}

func (v *validator) oneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		v.add(path, "%q is unknown: want one of %s", s, strings.Join(slices.DeleteFunc(allowed, func(a string) bool { return a == "" }), ", "))
	}
}

func (v *validator) limit(path string, value any, problem error) bool {
	if problem == nil {
		return true
	}
	if s, ok := value.(string); ok {
		value = strconv.Quote(s)
	}
	v.add(path, "%v %v", value, problem)
	return false
}

// Error is one problem of a configuration.
type Error struct {
	// Path is the key, as in "vm.drives[1].file", below "/Runner".
	Path string
	// Reason is the problem and what would be valid.
	Reason string
}

func (e *Error) Error() string { return e.Path + ": " + e.Reason }
