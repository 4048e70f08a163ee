// Package version says which version of vmop a program is.
package version

import "runtime/debug"

// stamped is what the linker was told: -X github.com/vmop/sdk/internal/version.stamped=v1.2.3.
// It is what git describes where programs are built by make or by the recipes of
// the images, which have no repository to look at.
var stamped string

// Unknown is the version of a program that was built of nothing that has one.
const Unknown = "(devel)"

// String is the version that was stamped into the program, else that of the module
// that it was built of, as by go install.
func String() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return Unknown
}
