package operatorconfig

import (
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
)

// Config is the content of a configuration file. The zero value, which is that of an empty file, is
// VM-Operator's default, with all namespaces instead of the operator's own.
type Config struct {
	// Settings are what concerns machines. The version is the caller's to add.
	Settings objects.Settings
	// Namespaces are those that the operator looks after; none means all.
	Namespaces []string
	// ExcludeNamespaces are those that it leaves out of all; it is the caller who refuses
	// both at once.
	ExcludeNamespaces []string
	// Concurrency is how many machines are reconciled at the same time; 0 leaves
	// it to the operator.
	Concurrency int
	// Operations is which finished operations of a machine are kept; its zero value leaves it to
	// the operator.
	Operations operation.Cleanup
	// Console is for programs that open consoles.
	Console Console
}

// Console is the file's settings for opening consoles.
type Console struct {
	// PasswordValidity is how long a display password can be used; 0 means
	// [console.DefaultValidity].
	PasswordValidity time.Duration
	// PreferredFamily is the family of the address in a viewer's file; empty
	// means [console.IPv4].
	PreferredFamily console.Family
	// KeepFile leaves the viewer's file with the password where it was saved.
	// (VM-Operator: deleteConnectionFile, inverted.)
	KeepFile bool
}

// Remarks are about options without effect in a file that can be used, in the order of its lines.
type Remarks struct {
	// Warnings are about unknown options, such as a misspelt one.
	Warnings []spec.Problem
	// Notes are about options of VM-Operator for what this operator does not have, such as a web
	// interface.
	Notes []spec.Problem
}

// Error is the error of [Parse]: all that is wrong, in the order of the lines.
type Error struct {
	// Problems is never empty.
	Problems []spec.Problem
	// Remarks are what else there is to report about the file.
	Remarks Remarks
}

// Error gives all problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
