package machineconfig

import (
	"errors"
	"fmt"
)

var errNoMachine = errors.New("no virtual machine is given")

var errNoDefaults = errors.New("the virtual machine has no defaults: see spec.Default")

// Error is what is wrong with one field of a manifest or of a local setting. Functions of this
// package join all that they find with errors.Join.
type Error struct {
	// Field is the JSON path, as in spec.vm.disks[1].cdrom.image.
	Field string
	// Reason says what was found and what would be right.
	Reason string
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }

// problems collects errors, so that a user sees all of them at once.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, &Error{Field: field, Reason: fmt.Sprintf(format, args...)})
}
