package spec

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid turns the messages of a check of apimachinery into findings.
func invalid(path *field.Path, value string, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range check(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// oneOf checks that a value is one of those allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func isBlankOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// validateLine checks a text that ends up in an argument or in a line of a
// protocol: a line break in it would begin something else.
func validateLine(s string, path *field.Path) field.ErrorList {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return field.ErrorList{field.Invalid(path, s, "must not contain control characters such as line breaks or NUL")}
	}
	return nil
}

// validateMatch checks a value against a pattern that is described in words.
func validateMatch(value string, pattern *regexp.Regexp, expected string, path *field.Path) field.ErrorList {
	if pattern.MatchString(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, expected)}
}

// validateFile checks the name of a file that is absolute or relative to a
// directory that it must not leave. VM-Operator lets relative names climb out
// of the directory with "..", which gives a manifest files that its author
// did not mean to offer.
func validateFile(name, directory string, at *field.Path) field.ErrorList {
	if errs := validateLine(name, at); len(errs) > 0 {
		return errs
	}
	switch {
	case strings.HasSuffix(name, "/") || path.Clean(name) == ".":
		return field.ErrorList{field.Invalid(at, name, "is a directory; name a file")}
	case !path.IsAbs(name) && slices.Contains(strings.Split(name, "/"), ".."):
		return field.ErrorList{field.Invalid(at, name, `a relative path must not have ".." in it, because it is looked up in `+directory+"; give an absolute path")}
	}
	return nil
}

// validateImageName checks where a CD image comes from: a file, see
// validateFile, or a URL that QEMU's block drivers or the runner can open.
func validateImageName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return nil // an empty drive
	}
	scheme, isURL := urlScheme(name)
	if !isURL {
		return validateFile(name, "the image repository", at)
	}
	if errs := validateLine(name, at); len(errs) > 0 {
		return errs
	}
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, name, "is not a valid URL")}
	case scheme == "file":
		if u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") {
			return field.ErrorList{field.Invalid(at, name, "a file URL must name a file by its absolute path, as in file:///srv/images/cd.iso")}
		}
	case scheme == "http" || scheme == "https":
		if u.Host == "" {
			return field.ErrorList{field.Invalid(at, name, "the URL has no host")}
		}
		if strings.Contains(name, " ") {
			return field.ErrorList{field.Invalid(at, name, "a URL must not contain spaces; write %20")}
		}
	default:
		return field.ErrorList{field.Invalid(at, name, "must be a file name, an absolute path or a URL with http, https or file")}
	}
	return nil
}

// urlScheme returns the scheme of a name that is meant as a URL. A colon alone
// does not make one, because file names may contain it.
func urlScheme(name string) (string, bool) {
	scheme, rest, ok := strings.Cut(name, ":")
	if !ok || !schemePattern().MatchString(scheme) {
		return "", false
	}
	scheme = strings.ToLower(scheme)
	known := scheme == "http" || scheme == "https" || scheme == "file"
	return scheme, known || strings.HasPrefix(rest, "//")
}
