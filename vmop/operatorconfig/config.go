package operatorconfig

import (
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
)

// Config is the content of a configuration file. The zero value, that of an empty file, is
// VM-Operator's default, but for all namespaces instead of the operator's own.
type Config struct {
	// Settings are those of machines. The caller adds the version.
	Settings objects.Settings
	// Namespaces are those that the operator reconciles; none means all.
	Namespaces []string
	// ExcludeNamespaces are those excluded from all. The caller must refuse both at once.
	ExcludeNamespaces []string
	// Concurrency is how many machines are reconciled at the same time; 0 is the operator's
	// default.
	Concurrency int
	// Operations is which finished operations of a machine are kept; the zero value is the
	// operator's default.
	Operations operation.Cleanup
	Console    Console
}

// Console is the file's settings for opening consoles.
type Console struct {
	// PasswordValidity is how long a display password can be used; 0 means
	// [console.DefaultValidity].
	PasswordValidity time.Duration
	// PreferredFamily is the family of the address in a viewer's file; empty means [console.IPv4].
	PreferredFamily console.Family
	// KeepFile keeps the viewer's file, with the password, where it was saved. (VM-Operator:
	// deleteConnectionFile, inverted.)
	KeepFile bool
}

// Remarks are about options without effect in a valid file, in the order of its lines.
type Remarks struct {
	// Warnings are about unknown options, such as a misspelt one.
	Warnings []spec.Problem
	// Notes are about options of VM-Operator for features that this operator lacks, such as a web
	// interface.
	Notes []spec.Problem
}

// Error is the error of [Parse]: all problems, in the order of the lines.
type Error struct {
	// Problems is never empty.
	Problems []spec.Problem
	// Remarks are those of the same file.
	Remarks Remarks
}

// Error returns all problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
