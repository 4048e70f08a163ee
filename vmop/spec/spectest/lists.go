package spectest

import (
	"fmt"

	"pgregory.net/rapid"
)

// many is rarely true: few machines have long lists, and properties of many machines
// should not take long. Random numbers are small or the largest more often than others,
// and a failure is shrunk to zeros, which is a short list.
func many(t *rapid.T, what string) bool { return rapid.IntRange(0, 31).Draw(t, "many "+what) == 17 }

// count is the length of a list: at most few as a rule, and rarely as many as there may
// be.
func count(t *rapid.T, what string, few, most int) int {
	if many(t, what) {
		return most
	}
	return rapid.IntRange(0, few).Draw(t, what)
}

// drawList generates lists whose entries may be there more than once. Where they are
// many they are: it is their number that matters then.
func drawList[T any](t *rapid.T, what string, few, most int, draw func(i int) T) []T {
	var out []T
	for i := range count(t, what, few, most) {
		if i > few {
			out = append(out, out[i-few-1])
			continue
		}
		out = append(out, draw(i))
	}
	return out
}

// fill rarely brings a mapping to as many keys as there may be.
func fill(t *rapid.T, m map[string]string, what string, most int) {
	if m == nil || !many(t, what) {
		return
	}
	for i := 0; len(m) < most; i++ {
		m[fmt.Sprintf("key-%d", i)] = fmt.Sprint(i)
	}
}

// drawLabels generates labels, rarely as many as there may be.
func drawLabels(t *rapid.T, what string, most int) map[string]string {
	out := Labels().Draw(t, what)
	fill(t, out, what, most)
	return out
}

// subdomain generates names of objects: labels with dots between.
func subdomain() *rapid.Generator[string] {
	return rapid.OneOf(Label(), rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?){1,3}`))
}
