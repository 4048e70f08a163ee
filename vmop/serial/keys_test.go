package serial

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is typed reaches the guest up to Ctrl-], but for Ctrl-C where it is taken.
func TestKeystrokes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.SliceOf(rapid.SampledFrom([]byte{'a', '\r', keyDetach, keyInterrupt, 0, 0xff})).Draw(t, "typed")
		interrupts := 0
		v := &View{Keys: rapid.Bool().Draw(t, "terminal")}
		if rapid.Bool().Draw(t, "run") {
			v.Interrupt = func() { interrupts++ }
		}
		keys, detached := v.keystrokes(slices.Clone(typed))
		if !v.Keys {
			if string(keys) != string(typed) || detached || interrupts > 0 {
				t.Errorf("a file %q became %q, detached %v", typed, keys, detached)
			}
			return
		}
		before, _, found := strings.Cut(string(typed), string(rune(keyDetach)))
		want := before
		if v.Interrupt != nil {
			want = strings.ReplaceAll(before, string(rune(keyInterrupt)), "")
		}
		if string(keys) != want || detached != found || interrupts != len(before)-len(want) {
			t.Errorf("%q became %q, detached %v, interrupted %d times", typed, keys, detached, interrupts)
		}
	})
}
