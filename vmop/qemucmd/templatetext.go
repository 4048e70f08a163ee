package qemucmd

import (
	"fmt"
	"regexp"
	"strconv"
	"text/template"
)

// maxTemplateText bounds what functions of a template make altogether, in bytes: one
// that adds a text to itself has twice as much with each round.
const maxTemplateText = 64 << 20

// maxWidth is the largest width that fmt takes of an argument.
const maxWidth = 1_000_000

var errTemplateText = fmt.Errorf("the template makes texts of more than %d bytes, or of more than %d altogether", maxTemplateOutput, maxTemplateText)

// formatNumbers finds widths and precisions, which make much of little, and those that
// are arguments.
var formatNumbers = regexp.MustCompile(`[0-9]+|\*`)

// texts counts the bytes that functions make while one template is executed.
// Text/template has no bound of its own for them.
type texts int

// functions are those of text/template that make texts, with bounds.
func (n *texts) functions() template.FuncMap {
	return template.FuncMap{
		"print":    n.bounded(fmt.Sprint),
		"println":  n.bounded(fmt.Sprintln),
		"html":     n.bounded(template.HTMLEscaper),
		"js":       n.bounded(template.JSEscaper),
		"urlquery": n.bounded(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			size := len(format)
			for _, number := range formatNumbers.FindAllString(format, -1) {
				width, err := strconv.Atoi(number)
				if err != nil {
					width = maxWidth
				}
				if size += width; size > maxTemplateOutput {
					return "", errTemplateText
				}
			}
			return n.bounded(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
	}
}

func (n *texts) bounded(f func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		size := 0
		for _, a := range args {
			if s, ok := a.(string); ok {
				size += len(s)
			}
		}
		if size <= maxTemplateOutput {
			text := f(args...)
			if *n += texts(len(text)); *n <= maxTemplateText && len(text) <= maxTemplateOutput {
				return text, nil
			}
		}
		return "", errTemplateText
	}
}

// maxTemplateOutput bounds what a template may produce, in bytes. A command line
// of the kernel's own limit fits many times.
const maxTemplateOutput = 4 << 20
