package qemucmd

import (
	"fmt"
	"regexp"
	"strconv"
	"text/template"
)

// maxTemplateText bounds the total output of a template's functions, in bytes: a loop that appends
// a string to itself doubles it with each round.
const maxTemplateText = 64 << 20

const maxWidth = 1_000_000

var errTemplateText = fmt.Errorf("the template makes texts of more than %d bytes, or of more than %d altogether", maxTemplateOutput, maxTemplateText)

// formatNumbers finds widths and precisions, which turn little input into much output, and those
// given as arguments.
var formatNumbers = regexp.MustCompile(`[0-9]+|\*`)

// texts counts the output of functions while one template is executed. Text/template has no bound
// of its own for it.
type texts int

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

// maxTemplateOutput bounds what a template may write, in bytes: many times the kernel's limit of a
// command line.
const maxTemplateOutput = 4 << 20
