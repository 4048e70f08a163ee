package spec

import (
	"slices"
	"strings"
)

// nearest returns the candidate that a misspelt name was most likely meant to
// be, or an empty string if none is near.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(2, len(name)/3+1)
	sorted := slices.Sorted(slices.Values(candidates))
	for _, c := range sorted {
		a, b := strings.ToLower(name), strings.ToLower(c)
		d := distance(a, b)
		if len(a) >= 4 && d > 1 && (strings.HasPrefix(b, a) || strings.HasPrefix(a, b)) {
			d = 1 // kernel for kernelBoot
		}
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn one string into the other.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b) // too long to be a misspelling; keep it cheap
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
