package qemucmd

import (
	"fmt"
	"strconv"
)

// Error is what is wrong with one field of a [Machine], or which part of the [Host] a field needs
// and does not find. [Build] returns all of them, joined; [Problems] takes them apart.
type Error struct {
	// Field is the path of the field by its JSON names, "disks[1].serial". Fields
	// of the host start with "host.".
	Field string
	// Message is what is wrong and what would be right.
	Message string
}

func (e *Error) Error() string { return e.Field + ": " + e.Message }

// Problems returns every *Error in the tree of err, in order.
func Problems(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, inner := range e.Unwrap() {
			all = append(all, Problems(inner)...)
		}
		return all
	case interface{ Unwrap() error }:
		return Problems(e.Unwrap())
	}
	return nil
}

func (b *builder) errorf(field, format string, args ...any) {
	b.errs = append(b.errs, &Error{Field: field, Message: fmt.Sprintf(format, args...)})
}

// invalid records a problem of a value, if there is one. It reports whether there
// is none.
func (b *builder) invalid(field string, value any, problem error) bool {
	if problem == nil {
		return true
	}
	if s, ok := value.(string); ok {
		value = strconv.Quote(s)
	}
	b.errorf(field, "%v %v", value, problem)
	return false
}
