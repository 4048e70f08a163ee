package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vmop/sdk/internal/yamljson"
)

// table writes rows in columns, as kubectl does.
func table(w io.Writer, header []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = printableCell(c)
		}
		// A last cell that is padded or empty would leave blanks at the line's end.
		if _, err := fmt.Fprintln(t, strings.Join(trimRow(cells), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// formatWide is a table with all of its text, however wide the terminal is.
const formatWide = "wide"

// tableWithin writes a table whose lines have at most so many columns, as far as it is
// the last cell that makes them longer; 0 is any number. A cell that was cut ends with
// an ellipsis.
func tableWithin(w io.Writer, width int, header []string, rows [][]string) error {
	if width <= 0 {
		return table(w, header, rows)
	}
	var b strings.Builder
	if err := table(&b, header, rows); err != nil {
		return err
	}
	const least = 20 // columns of the last cell, which say something
	first, _, _ := strings.Cut(b.String(), "\n")
	start := len([]rune(first)) - len([]rune(header[len(header)-1]))
	for line := range strings.Lines(b.String()) {
		text := []rune(strings.TrimSuffix(line, "\n"))
		if most := max(width, start+least); len(text) > most {
			text = append(text[:most-1], '…')
		}
		if _, err := fmt.Fprintln(w, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// trimRow leaves out empty cells at the end.
func trimRow(cells []string) []string {
	for len(cells) > 1 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// none is what kubectl shows for nothing.
const none = "<none>"

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// age is the time since t, as kubectl shows it.
func age(now time.Time, t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// size shows bytes in Kubernetes' binary units, rounded to a tenth if they are
// not a whole number of one.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return strconv.FormatInt(n, 10)
	}
	u := 0
	for u+1 < len(units) && n >= 1<<(10*(u+2)) {
		u++
	}
	unit := float64(int64(1) << (10 * (u + 1)))
	number := strings.TrimSuffix(strconv.FormatFloat(float64(n)/unit, 'f', 1, 64), ".0")
	return number + units[u:u+1] + "i"
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeYAML writes what writeJSON writes, with its order.
func writeYAML(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if data, err = yamljson.FromJSON(data); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
