package textout

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows in columns, as kubectl does.
func Table(w io.Writer, header []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Cell(c)
		}
		// A last cell that is padded or empty would leave blanks at the line's end.
		if _, err := fmt.Fprintln(t, strings.Join(trimRow(cells), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// TableWithin writes a table whose lines have at most width columns, by truncating the last cell if
// that suffices; 0 means no limit. A truncated cell ends with an ellipsis.
func TableWithin(w io.Writer, width int, header []string, rows [][]string) error {
	if width <= 0 {
		return Table(w, header, rows)
	}
	var b strings.Builder
	if err := Table(&b, header, rows); err != nil {
		return err
	}
	const least = 20 // minimum columns for a useful last cell
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

// Section writes a table after an empty line, if it has rows.
func Section(w io.Writer, header []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return Table(w, header, rows)
}

// Properties writes names and values, one per line.
func Properties(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s:\t%s\n", r[0], Cell(r[1]))
	}
	return t.Flush()
}

func trimRow(cells []string) []string {
	for len(cells) > 1 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return cells
}
