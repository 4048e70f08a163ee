package textout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// None is what kubectl shows for nothing.
const None = "<none>"

// OrNone returns s, or [None] if it is empty.
func OrNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// Age returns the time since t, as kubectl shows it.
func Age(now time.Time, t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// Size formats bytes in Kubernetes' binary units, rounded to a tenth if they are not a whole number
// of one.
func Size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return strconv.FormatInt(n, 10)
	}
	u := 0
	for u+1 < len(units) && n >= 1<<(10*(u+2)) {
		u++
	}
	unit := float64(int64(1) << (10 * (u + 1)))
	number := strings.TrimSuffix(strconv.FormatFloat(float64(n)/unit, 'f', 1, 64), ".0")
	return number + units[u:u+1] + "i"
}

// InWords is Size for a sentence, in which a bare number would be unclear.
func InWords(n int64) string {
	if n < 1<<10 {
		return Counted(int(n), "byte")
	}
	return Size(n)
}

// Bytes returns a size both readable and exact.
func Bytes(n int64) string {
	if s := Size(n); s != strconv.FormatInt(n, 10) {
		return fmt.Sprintf("%s (%d bytes)", s, n)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Counted returns a number with its noun.
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
