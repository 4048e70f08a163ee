package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// +kubebuilder:object:generate=false

// Problem is one thing that is wrong with a manifest. Its JSON is what programs read.
type Problem struct {
	// File is the name that was given to [Load].
	File string `json:"file,omitempty"`
	// Line is the line in the file, counted from 1; 0 if it is not known.
	Line int `json:"line,omitempty"`
	// Kind is the kind of the object, empty if there is none.
	Kind string `json:"kind,omitempty"`
	// Namespace is the namespace of the object, if it has one.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object, if it has one.
	Name string `json:"name,omitempty"`
	// Path is the field, such as spec.vm.disks[2].cdrom.image. It is empty if
	// the problem is not one of a field.
	Path string `json:"path,omitempty"`
	// Message is what was found and what would be right.
	Message string `json:"message"`
}

// String gives the problem in one line:
//
//	vm.yaml:12: VirtualMachine default/web: spec.vm.state: what is wrong
//
// Parts that are not known are left out.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Kind != "" {
		b.WriteString(p.Kind)
		switch {
		case p.Namespace != "" && p.Name != "":
			b.WriteString(" " + p.Namespace + "/" + p.Name)
		case p.Name != "":
			b.WriteString(" " + p.Name)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return oneLine(b.String())
}

// oneLine shows control characters by their escapes, so that what a manifest
// contains cannot forge lines of a report or steer a terminal.
func oneLine(s string) string {
	clean := func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' }
	if strings.IndexFunc(s, clean) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case clean(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// +kubebuilder:object:generate=false

// LoadError is the error of [Load]: everything that is wrong, in the order of
// the file. Callers get it with errors.As.
type LoadError struct {
	// Problems is never empty.
	Problems []Problem `json:"problems"`
	// Warnings are the tolerated unknown fields of the objects that have
	// problems, and so are not returned.
	Warnings []Problem `json:"warnings,omitempty"`
}

// Error gives all problems, one per line.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func loadError(problems, warnings []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &LoadError{Problems: problems, Warnings: warnings}
}

// abbreviate keeps messages on one line.
func abbreviate(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
