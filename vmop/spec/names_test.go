package spec

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// The short ways say what apimachinery says, and are taken wherever that finds nothing wrong.
func TestNamesAreWhatApimachinerySays(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "Z", "0", "-", "_", ".", "/", " ", "é", "ab", "a-b", "x.y", "é-", strings.Repeat("l", 62), strings.Repeat("d.", 126)})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "")
		for name, pair := range map[string][2]func(string) []string{
			"IsQualifiedName":    {isQualifiedName, validation.IsQualifiedName},
			"IsValidLabelValue":  {isLabelValue, validation.IsValidLabelValue},
			"IsDNS1123Label":     {isLabel, validation.IsDNS1123Label},
			"IsDNS1123Subdomain": {isSubdomain, validation.IsDNS1123Subdomain},
		} {
			if got, want := pair[0](s), pair[1](s); !slices.Equal(got, want) {
				t.Fatalf("%s of %q: %q, want %q", name, s, got, want)
			}
		}
		if isDomain(s) != (len(validation.IsDNS1123Subdomain(s)) == 0) || (s == "" || isWord(s)) != (len(validation.IsValidLabelValue(s)) == 0) {
			t.Fatalf("the long way is taken for %q", s)
		}
	})
}
