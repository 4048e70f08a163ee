package qemucmd

import (
	"strconv"
)

// Error is a problem with one field of a [Machine], or a part of the [Host] that a field needs and
// that is missing. [Build] returns all of them, joined; [Problems] takes them apart.
type Error struct {
	// Field is the path of the field by its JSON names, "disks[1].serial". Fields of the host start
	// with "host.".
	Field string
	// Message describes what is wrong and what would be right.
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

func indexed(list string, i int, name string) string {
	return list + "[" + strconv.Itoa(i) + "]." + name
}
