// Package version says which version of vmop a program is.
package version

import "runtime/debug"

// stamped is set by the linker: -X github.com/vmop/sdk/internal/version.stamped=v1.2.3. It is the
// output of git describe in programs built by make or by the images' recipes, which have no
// repository.
var stamped string

// Unknown is the version of a program that was built from a source without a version.
const Unknown = "(devel)"

// String returns the version that was stamped into the program, or else that of the module that it
// was built from, as by go install.
func String() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return Unknown
}
