package spec

import (
	"regexp"
	"sync"
)

func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	// yamlFloatPattern is a floating point number of YAML 1.1, jsonNumberPattern a number of JSON.
	yamlFloatPattern  = pattern(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	jsonNumberPattern = pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

	// durationPattern splits an ISO 8601 duration into its numbers.
	durationPattern = pattern(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?` +
		`(T(?:(\d+)[Hh])?(?:(\d+)[Mm])?(?:(\d+)(\.\d{1,9})?[Ss])?)?$`)
)
