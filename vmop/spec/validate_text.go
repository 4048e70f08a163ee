package spec

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func invalid(path spot, value string, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range check(value) {
		errs = append(errs, invalidAt(path, value, message))
	}
	return errs
}

func oneOf[T ~string](path spot, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{notSupportedAt(path, value, allowed)}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func isBlankOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func limited[T any](path spot, value T, problem error) field.ErrorList {
	if problem == nil {
		return nil
	}
	return field.ErrorList{invalidAt(path, value, problem.Error())}
}

// validateLine checks a text that ends up in an argument or in a line of a
// protocol: a line break in it would begin something else.
func validateLine(s string, path spot) field.ErrorList {
	return limited(path, s, limits.Text(s))
}

// validateFile checks the name of a file that is absolute or relative to a
// directory that it must not leave. VM-Operator lets relative names climb out
// of the directory with "..", which gives a manifest files that its author
// did not mean to offer.
func validateFile(name, directory string, at spot) field.ErrorList {
	if errs := validateLine(name, at); len(errs) > 0 {
		return errs
	}
	switch {
	case strings.HasSuffix(name, "/") || path.Clean(name) == ".":
		return field.ErrorList{invalidAt(at, name, "is a directory; name a file")}
	case !path.IsAbs(name) && strings.Contains(name, "..") && slices.Contains(strings.Split(name, "/"), ".."):
		return field.ErrorList{invalidAt(at, name, `a relative path must not have ".." in it, because it is looked up in `+directory+"; give an absolute path")}
	}
	return nil
}

// shownURL is what errors show of a URL: messages reach logs and conditions, and one with
// an "@" may have a password before it.
func shownURL(text string) string {
	if strings.Contains(text, "@") {
		return "(not shown)"
	}
	return text
}

// validateImageName checks where a CD image comes from: a file, see
// validateFile, or a URL that QEMU's block drivers or the runner can open.
func validateImageName(name string, at spot) field.ErrorList {
	if name == "" {
		return nil // an empty drive
	}
	scheme, isURL := limits.URLScheme(name)
	if !isURL {
		return validateFile(name, "the image repository", at)
	}
	if scheme != "file" {
		return limited(at, shownURL(name), limits.ImageURL(name))
	}
	u, err := url.Parse(name)
	if err != nil || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") {
		return field.ErrorList{invalidAt(at, shownURL(name), "a file URL must name a file by its absolute path, as in file:///srv/images/cd.iso")}
	}
	return limited(at, name, limits.Text(u.Path))
}

// validateUser checks a user name that is sent to the agent in the guest in a
// protocol of words and lines.
func validateUser(name string, path spot) field.ErrorList {
	if strings.ContainsFunc(name, isBlankOrControl) {
		return field.ErrorList{invalidAt(path, name, "must be a user name, without spaces or control characters")}
	}
	return nil
}

func validatePort(port int32, path spot) field.ErrorList {
	return limited(path, port, limits.Port(int64(port)))
}
