package textout

import (
	"strings"
	"testing"
)

// A long message ends with the terminal's line, and the other columns are whole.
func TestTableWithinATerminal(t *testing.T) {
	header := []string{"NAME", "AGE", "MESSAGE"}
	rows := [][]string{{"web", "5s", "the guest does not go on: üüüü is full"}, {"a-rather-long-name", "1d", ""}}
	for width, want := range map[int]string{
		0:  "web                  5s    the guest does not go on: üüüü is full",
		65: "web                  5s    the guest does not go on: üüüü is full",
		60: "web                  5s    the guest does not go on: üüüü i…",
		10: "web                  5s    the guest does not …",
	} {
		var b strings.Builder
		if err := TableWithin(&b, width, header, rows); err != nil {
			t.Fatal(err)
		}
		want = "NAME                 AGE   MESSAGE\n" + want + "\na-rather-long-name   1d\n"
		if b.String() != want {
			t.Errorf("at %d columns it is\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}
