package spec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names are checked in every decision about a machine. Those of apimachinery's checks that look
// at keys and values of labels are called only where what is simple does not hold: they split
// strings and run regular expressions, which was a tenth of a decision.

// isQualifiedName is [validation.IsQualifiedName].
func isQualifiedName(s string) []string {
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		prefix, name = "", s
	}
	if isWord(name) && (!prefixed || isDomain(prefix)) {
		return nil
	}
	return validation.IsQualifiedName(s)
}

// isLabelValue is [validation.IsValidLabelValue].
func isLabelValue(s string) []string {
	if s == "" || isWord(s) {
		return nil
	}
	return validation.IsValidLabelValue(s)
}

// isSubdomain is [validation.IsDNS1123Subdomain].
func isSubdomain(s string) []string {
	if isDomain(s) {
		return nil
	}
	return validation.IsDNS1123Subdomain(s)
}

// isBeginning checks what an API server makes a name of, as that does: a dash at the end
// is not the end of the name.
func isBeginning(s string) []string {
	if rest, dashed := strings.CutSuffix(s, "-"); dashed && rest != "" {
		s = rest[:len(rest)-1] + "a"
	}
	return isSubdomain(s)
}

// isLabel is [validation.IsDNS1123Label].
func isLabel(s string) []string {
	if len(s) <= validation.DNS1123LabelMaxLength && isDomain(s) && !strings.Contains(s, ".") {
		return nil
	}
	return validation.IsDNS1123Label(s)
}

// isWord reports whether a text is the name in a label's key, or a label's value, and not empty.
func isWord(s string) bool {
	if s == "" || len(s) > validation.LabelValueMaxLength || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// isDomain reports whether a text is a subdomain as in RFC 1123.
func isDomain(s string) bool {
	if len(s) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	inside := false // a label has begun, and may end
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			inside = true
		case c == '.' && inside:
			inside = false
		case c == '-' && i > 0 && s[i-1] != '.' && i+1 < len(s) && s[i+1] != '.':
		default:
			return false
		}
	}
	return inside
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
