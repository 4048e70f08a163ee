package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
)

// The error for a file without a machine lists every kind that can be read: those of
// the registry and those of other systems.
func TestUnderstoodIsComplete(t *testing.T) {
	listed := map[string][]string{}
	for part := range strings.SplitSeq(understood(), "; ") {
		kinds, group, _ := strings.Cut(part, " of ")
		listed[group] = strings.Split(kinds, ", ")
	}
	want := append(dialect.Kinds(), dialect.Companions()...)
	for _, k := range spec.Kinds() {
		want = append(want, k.Name+"."+spec.GroupName)
	}
	n := 0
	for _, kinds := range listed {
		n += len(kinds)
	}
	if n != len(want) {
		t.Errorf("%d are listed of %d", n, len(want))
	}
	for _, w := range want {
		if kind, group, _ := strings.Cut(w, "."); !slices.Contains(listed[group], kind) {
			t.Errorf("%s is not listed in %s", w, understood())
		}
	}
}
