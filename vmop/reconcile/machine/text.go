package machine

import (
	"strings"
	"unicode"

	"github.com/vmop/sdk/vmop/conditions"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// camel turns a word into a reason of a condition and of an event: CamelCase, beginning with a
// letter.
func camel(word string) string {
	plain := word != "" && unicode.IsUpper(rune(word[0]))
	for i := 0; i < len(word) && plain; i++ {
		c := word[i]
		plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	if plain {
		return word
	}
	var b strings.Builder
	up := true
	for _, r := range word {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
		case b.Len() == 0 && unicode.IsDigit(r):
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "Unknown"
	}
	return b.String()
}

func textsOf(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs.ToAggregate().Errors() {
		out = append(out, err.Error())
	}
	return out
}

func few(errs field.ErrorList) string {
	told, _ := conditions.List(textsOf(errs), "; ", 80)
	return told
}

func after(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return ": " + strings.Join(left, "; ")
}
