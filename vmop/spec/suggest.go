package spec

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/editdistance"
)

// nearest returns the candidate that a misspelt name most likely stands for; "" if none is similar.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(2, len(name)/3+1)
	sorted := slices.Sorted(slices.Values(candidates))
	for _, c := range sorted {
		a, b := strings.ToLower(name), strings.ToLower(c)
		d := editdistance.Between(a, b)
		if len(a) >= 4 && d > 1 && (strings.HasPrefix(b, a) || strings.HasPrefix(a, b)) {
			d = 1 // kernel for kernelBoot
		}
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}
