package vmop

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Problems returns the problems in an error of this package, of spec, machineconfig, runnerconfig
// or qemucmd, in a form for programs: file, line, kind, namespace, name, path and message, also as
// JSON. File and line are set for errors of [Load], the path for fields of the manifest. Any other
// error is one problem with only a message. Nil has none.
func Problems(err error) []spec.Problem {
	switch e := err.(type) {
	case nil:
		return nil
	case *spec.LoadError:
		return e.Problems
	case *field.Error:
		return []spec.Problem{{Path: e.Field, Message: e.ErrorBody()}}
	case *machineconfig.Error:
		return []spec.Problem{{Path: e.Field, Message: e.Reason}}
	case *runnerconfig.Error:
		return []spec.Problem{{Message: "runner configuration: " + e.Error()}} // its paths are those of the configuration
	case *qemucmd.Error:
		return []spec.Problem{{Message: "QEMU: " + e.Error()}}
	case interface{ Unwrap() []error }:
		var all []spec.Problem
		for _, inner := range e.Unwrap() {
			all = append(all, Problems(inner)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := Problems(e.Unwrap()); len(inner) != 1 || inner[0].Message != e.Unwrap().Error() {
			return inner
		}
	}
	return []spec.Problem{{Message: err.Error()}}
}
