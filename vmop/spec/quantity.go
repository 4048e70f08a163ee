package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantityText is how long the text of a quantity may be, in the definition of the resource too.
const maxQuantityText = 32

// checkQuantityText refuses what [resource.ParseQuantity] must not see: its time
// and memory grow with the value of the exponent, and what it returns for a huge
// one makes each comparison a computation with as many digits. Two digits of
// exponent are more than any amount has.
func checkQuantityText(s string) error {
	if len(s) > maxQuantityText {
		return errors.New("is longer than any amount, 32 characters")
	}
	if i := strings.LastIndexAny(s, "eE"); i > 0 {
		// "1E" and "1Ei" are a suffix; leading zeros have no meaning.
		if digits := strings.TrimLeft(s[i+1:], "+-0"); len(digits) > 2 && strings.Trim(digits, "0123456789") == "" {
			return errors.New("has an exponent of more than two digits; no amount is as large or as small")
		}
	}
	return nil
}

// Bytes returns a quantity of memory or storage as a number of bytes. A
// fraction of a byte is rounded up, as everywhere in Kubernetes; [Validate]
// refuses such quantities, and those beyond an int64, which come out as its
// largest or smallest value.
func Bytes(q resource.Quantity) int64 {
	sign := q.Sign()
	if sign == 0 {
		return 0 // AsInt64 would multiply in a loop, as often as the exponent says
	}
	if n, ok := q.AsInt64(); ok { // as nearly all are, at no cost
		return n
	}
	switch {
	case magnitude(q) > 20 && sign > 0:
		return math.MaxInt64
	case magnitude(q) > 20:
		return math.MinInt64
	case magnitude(q) < -20:
		return int64(max(sign, 0))
	}
	return q.Value()
}

// CompareQuantities compares two quantities as [resource.Quantity.Cmp] does, at a cost that depends
// on the length of their texts only. Cmp computes with as many digits as the exponents differ by,
// so that "1e200000000" keeps it busy for minutes; never use it for untrusted quantities.
func CompareQuantities(a, b resource.Quantity) int {
	if a.Sign() != b.Sign() {
		return cmp.Compare(a.Sign(), b.Sign())
	}
	if a.Sign() == 0 {
		return 0
	}
	// A product of digits ends at 19 of them, if there is one that is not 0.
	if na, ok := a.AsInt64(); ok {
		if nb, ok := b.AsInt64(); ok {
			return cmp.Compare(na, nb)
		}
	}
	// A digit is 3.3 bits, and the bits of the leading digit round up or down.
	if ma, mb := magnitude(a), magnitude(b); ma > mb+1 || mb > ma+1 {
		return cmp.Compare(ma, mb) * a.Sign()
	}
	return a.Cmp(b)
}

// magnitude is about the number of digits in front of the decimal point; it is
// negative for small fractions. The quantity is not zero.
func magnitude(q resource.Quantity) int64 {
	d := q.AsDec() // of a copy
	return int64(math.Round(float64(d.UnscaledBig().BitLen())*math.Log10(2))) - int64(d.Scale())
}

func wholeBytes(q resource.Quantity) (int64, bool) {
	if q.Sign() == 0 {
		return 0, true
	}
	if n, ok := q.AsInt64(); ok {
		return n, true
	}
	if m := magnitude(q); m > 20 || m < -1 {
		return 0, false
	}
	n := q.Value()
	return n, q.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) == 0
}

// CheckQuantities looks at the JSON of a machine or of a class, of whatever API server, for
// quantities that must not be decoded, see [CompareQuantities]: reading one such
// as "1e-2000000000" alone never ends. The definition of the resource refuses
// them, but not those that were stored before it.
func CheckQuantities(machine []byte) error {
	if !suspicious(machine) {
		return nil
	}
	type resources struct {
		Limits, Requests map[string]json.RawMessage
	}
	// The fields are those that the types have quantities at. What does not fit
	// is an error of the decoding, which goes on behind it as this does.
	var m struct {
		Spec struct {
			Resources      resources
			SizingPolicies []struct {
				Memory struct {
					Min, Max, Step json.RawMessage
					PerCore        struct{ Min, Max json.RawMessage }
				}
			}
			VM struct {
				MaximumRAM, CurrentRAM json.RawMessage
				Disks                  []struct {
					Image, ContainerDisk struct{ Size json.RawMessage }
					VolumeClaimTemplate  struct {
						Spec struct{ Resources resources }
					}
				}
			}
		}
		Status struct{ RAM json.RawMessage }
	}
	_ = json.Unmarshal(machine, &m)
	var errs []error
	check := func(path string, raw json.RawMessage) {
		text := string(raw) // of a number
		_ = json.Unmarshal(raw, &text)
		if err := checkQuantityText(text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s %w", path, abbreviate(string(raw)), err))
		}
	}
	all := func(path string, r resources) {
		for _, key := range sortedKeys(r.Limits) {
			check(path+".limits."+key, r.Limits[key])
		}
		for _, key := range sortedKeys(r.Requests) {
			check(path+".requests."+key, r.Requests[key])
		}
	}
	all("spec.resources", m.Spec.Resources)
	check("spec.vm.maximumRam", m.Spec.VM.MaximumRAM)
	check("spec.vm.currentRam", m.Spec.VM.CurrentRAM)
	for i := range m.Spec.VM.Disks {
		all(fmt.Sprintf("spec.vm.disks[%d].volumeClaimTemplate.spec.resources", i), m.Spec.VM.Disks[i].VolumeClaimTemplate.Spec.Resources)
		check(fmt.Sprintf("spec.vm.disks[%d].image.size", i), m.Spec.VM.Disks[i].Image.Size)
		check(fmt.Sprintf("spec.vm.disks[%d].containerDisk.size", i), m.Spec.VM.Disks[i].ContainerDisk.Size)
	}
	for i, p := range m.Spec.SizingPolicies {
		for name, raw := range map[string]json.RawMessage{
			"min": p.Memory.Min, "max": p.Memory.Max, "step": p.Memory.Step,
			"perCore.min": p.Memory.PerCore.Min, "perCore.max": p.Memory.PerCore.Max,
		} {
			check(fmt.Sprintf("spec.sizingPolicies[%d].memory.%s", i, name), raw)
		}
	}
	check("status.ram", m.Status.RAM)
	return errors.Join(errs...)
}

// markup are the characters that encoding/json escapes so that HTML may have them.
var markup = []string{`\u003c`, `\u003e`, `\u0026`}

// suspicious reports whether there may be a number with a long exponent, or a
// long number, somewhere in JSON: at the beginning of a string, where a quantity is, or
// of a word in one. Hardly any machine has one, though their identifiers are full of
// digits with an e between them.
func suspicious(text []byte) bool {
	digits, exponent := 0, -1 // how many there are before, and behind an e
	begins := true            // a number may begin here
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9' && (begins || digits > 0):
			digits++
			if exponent >= 0 {
				exponent++
			}
			if exponent > 2 || digits > maxQuantityText {
				return true
			}
		case c == '.' && (begins || digits > 0):
			digits++
			exponent = -1
		case (c == 'e' || c == 'E') && digits > 0:
			exponent = 0
		case (c == '+' || c == '-') && (exponent == 0 || begins):
		case c == '\\' && bytes.HasPrefix(text[i:], []byte(`\u00`)):
			// It may be any character of a number, but for those of markup, which are
			// the only ones that are written like this for no reason.
			if !slices.Contains(markup, string(text[i:min(i+len(markup[0]), len(text))])) {
				return true
			}
			digits, exponent = 0, -1
		default:
			digits, exponent = 0, -1
		}
		begins = c == '"' || c == ':' || c == ',' || c == '[' || c == '{' || c == ' ' || c == '\n' || c == '\t' || c == '\r' || begins && (c == '+' || c == '-')
	}
	return false
}
