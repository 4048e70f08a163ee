package runnerconfig

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. Its text form is VM-Operator's: a number and the
// largest unit that divides it exactly ("4 GiB", "1 GB", "12345").
type Bytes int64

// byteUnits are in the order in which String tries them. A binary unit precedes the decimal one of
// the same name because it is larger.
var byteUnits = []struct {
	name string
	size int64
}{
	{"EiB", 1 << 60}, {"EB", 1e18},
	{"PiB", 1 << 50}, {"PB", 1e15},
	{"TiB", 1 << 40}, {"TB", 1e12},
	{"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"kB", 1e3},
}

// String writes b with the largest unit that divides it.
func (b Bytes) String() string {
	if b > 0 {
		for _, u := range byteUnits {
			if int64(b)%u.size == 0 {
				return strconv.FormatInt(int64(b)/u.size, 10) + " " + u.name
			}
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

var bytesPattern = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$`)

// kubernetesUnits are accepted beside VM-Operator's: its sample files use them, although its runner
// refuses them.
var kubernetesUnits = map[string]int64{
	"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	"B": 1, "": 1,
}

// ParseBytes reads a size: a number with an optional unit of VM-Operator's (kB,
// MB, …, KiB, MiB, …) or of Kubernetes' (k, M, …, Ki, Mi, …). The result must be
// a whole number of bytes.
func ParseBytes(s string) (Bytes, error) {
	if len(s) > 64 {
		return 0, fmt.Errorf("%q… is too long for a size", s[:20])
	}
	m := bytesPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: want a number and a unit, such as \"4 GiB\"", s)
	}
	unit, ok := kubernetesUnits[m[2]]
	for _, u := range byteUnits {
		if u.name == m[2] {
			unit, ok = u.size, true
		}
	}
	if !ok {
		return 0, fmt.Errorf("%q has the unknown unit %q: want kB, MB, GB, KiB, MiB, GiB, …", s, m[2])
	}
	n, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, fmt.Errorf("%q is not a number", m[1])
	}
	n.Mul(n, new(big.Rat).SetInt64(unit))
	if !n.IsInt() || !n.Num().IsInt64() {
		return 0, fmt.Errorf("%q is not a whole number of bytes below 2^63", s)
	}
	return Bytes(n.Num().Int64()), nil
}

// MarshalJSON writes the text form.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// UnmarshalJSON reads the text form, or a number of bytes.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	s := strings.TrimSpace(string(data))
	if strings.HasPrefix(s, `"`) {
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
	} else if s == "null" {
		return nil
	}
	v, err := ParseBytes(s)
	if err != nil {
		return err
	}
	*b = v
	return nil
}
