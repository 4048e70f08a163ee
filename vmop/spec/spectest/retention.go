package spectest

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// Retention generates durations and instants that [spec.ParseRetention] takes.
func Retention() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "instant") {
			return drawInstant(t)
		}
		number := func(letter string) int {
			return rapid.OneOf(rapid.IntRange(0, 99), rapid.IntRange(0, 9999)).Draw(t, letter)
		}
		part := func(letters ...string) string {
			if rapid.Bool().Draw(t, "has "+letters[0]) {
				return fmt.Sprintf("%d%s", number(letters[0]), rapid.SampledFrom(letters).Draw(t, "letter"))
			}
			return ""
		}
		// Together the months are fewer than those of 9999 years.
		years := ""
		if maybe(t, "Y") {
			years = fmt.Sprintf("%dY", rapid.IntRange(0, 9000).Draw(t, "Y"))
		}
		date := years + part("M") + part("W") + part("D")
		clock := part("H", "h") + part("M", "m")
		if maybe(t, "S") {
			clock += fmt.Sprintf("%d%s%s", number("S"), rapid.StringMatching(`(\.[0-9]{1,9})?`).Draw(t, "fraction"), rapid.SampledFrom([]string{"S", "s"}).Draw(t, "letter"))
		}
		if date+clock == "" {
			return "PT0S"
		}
		if clock != "" {
			clock = "T" + clock
		}
		return "P" + date + clock
	})
}

// drawInstant draws an instant in all of its spellings.
func drawInstant(t *rapid.T) string {
	text := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 0).UTC().Format("2006-01-02T15:04:05")
	text += rapid.StringMatching(`(\.[0-9]{1,9})?`).Draw(t, "fraction")
	text += rapid.OneOf(rapid.Just("Z"), rapid.StringMatching(`[+-](0[0-9]|1[0-3])(:?[0-5][0-9])?`)).Draw(t, "zone")
	if maybe(t, "small letters") {
		text = strings.ToLower(text)
	}
	return text
}
