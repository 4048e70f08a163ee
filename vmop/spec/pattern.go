package spec

import (
	"regexp"
	"sync"
)

// pattern compiles a regular expression when it is first needed.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	uuidPattern   = pattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	typePattern   = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	devicePattern = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// cpuPattern is a model and its features; a comma begins the next feature,
	// and nothing in it can begin another option.
	cpuPattern    = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*(,[+-]?[A-Za-z0-9][A-Za-z0-9._-]*(=[A-Za-z0-9._:+-]+)?)*$`)
	schemePattern = pattern(`^[A-Za-z][A-Za-z0-9+.-]*$`)

	// yamlFloatPattern is a floating point number of YAML 1.1, and
	// jsonNumberPattern a number of JSON.
	yamlFloatPattern  = pattern(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	jsonNumberPattern = pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

	// durationPattern splits a duration of ISO 8601 into its numbers.
	durationPattern = pattern(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?` +
		`(T(?:(\d+)[Hh])?(?:(\d+)[Mm])?(?:(\d+)(\.\d{1,9})?[Ss])?)?$`)
)
