package limits

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// IsStandardTemplate reports whether a template's name stands for the built-in machine: the empty
// name, and the FreeMarker templates that VM-Operator ships, with or without a directory.
func IsStandardTemplate(name string) bool {
	base := path.Base(name)
	return name == "" || strings.HasPrefix(base, "Standard-VM-") && strings.HasSuffix(base, ".ftl.yaml")
}

var errFreeMarker = errors.New("is a FreeMarker template, which is not executed here; write a Go text/template with one argument of QEMU per line, that begins with {{standard}} and adds its own lines")

// TemplateName refuses the names of FreeMarker templates other than the standard ones. The CRD has
// the same rule.
func TemplateName(name string) error {
	base := strings.ToLower(path.Base(name))
	if !IsStandardTemplate(name) && (strings.HasSuffix(base, ".ftl") || strings.Contains(base, ".ftl.")) {
		return errFreeMarker
	}
	return nil
}

var freeMarker = regexp.MustCompile(`<#(--|if|list|assign|else|switch|macro|include|setting|ftl)|</#`)

// TemplateText refuses a FreeMarker template, whatever its name: to Go it would be plain text.
func TemplateText(source string) error {
	if freeMarker.MatchString(source) {
		return errFreeMarker
	}
	return nil
}
