package objects

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
)

// RecordedRequests returns those that a pod was created with. There are none if its manifest sets
// the requests, or if it was created by VM-Operator or by a version of vmop that did not record
// them.
func RecordedRequests(pod *corev1.Pod) (Requests, bool) {
	text, ok := pod.Annotations[names.AnnotationRequests]
	if !ok {
		return Requests{}, false
	}
	r, usual := usualRequests(text)
	if !usual && json.Unmarshal([]byte(text), &r) != nil {
		return Requests{}, false
	}
	if !(r.CPUOvercommit > 0) || !(r.RAMOvercommit > 0) || r.Overhead < 0 || r.CoreFraction < 0 || r.CoreFraction > 100 {
		return Requests{}, false
	}
	return r, true
}

// ParseAmounts reads amounts as JSON. It reports whether they are some.
func ParseAmounts(text string) (Amounts, bool) {
	a, rest, usual := usualAmounts(text)
	if (!usual || rest != "") && json.Unmarshal([]byte(text), &a) != nil {
		return Amounts{}, false
	}
	return a, a.CPUs > 0 && a.RAM > 0
}

// Each decision about a machine reads both texts, which take a tenth of it with
// encoding/json. What has the form that this package writes is read without reflection.

func usualRequests(text string) (r Requests, usual bool) {
	in := &usualText{text, true}
	in.skip(`{"cpuOvercommit":`)
	r.CPUOvercommit = in.decimal()
	in.skip(`,"ramOvercommit":`)
	r.RAMOvercommit = in.decimal()
	in.skip(`,"overhead":`)
	r.Overhead = in.whole()
	in.skip(`,"maximum":`)
	var ok bool
	r.Maximum, in.left, ok = usualAmounts(in.left)
	in.usual = in.usual && ok
	if in.left, r.Limited = strings.CutPrefix(in.left, `,"limited":true`); strings.HasPrefix(in.left, `,"coreFraction":`) {
		in.skip(`,"coreFraction":`)
		r.CoreFraction = in.whole()
	}
	in.skip(`}`)
	if !in.usual || in.left != "" {
		return Requests{}, false
	}
	return r, true
}

func usualAmounts(text string) (a Amounts, rest string, usual bool) {
	in := &usualText{text, true}
	in.skip(`{"cpus":`)
	a.CPUs = in.whole()
	in.skip(`,"ram":`)
	a.RAM = in.whole()
	in.skip(`}`)
	if !in.usual {
		return Amounts{}, text, false
	}
	return a, in.left, true
}

// usualText is what is left to read of a text, as long as that has the usual form.
type usualText struct {
	left  string
	usual bool
}

func (t *usualText) skip(text string) {
	var found bool
	t.left, found = strings.CutPrefix(t.left, text)
	t.usual = t.usual && found
}

// digits are those that come next: at least one, and no 0 before others, as JSON has it.
func (t *usualText) digits() string {
	n := 0
	for n < len(t.left) && t.left[n] >= '0' && t.left[n] <= '9' {
		n++
	}
	out := t.left[:n]
	t.left = t.left[n:]
	t.usual = t.usual && n > 0 && (n == 1 || out[0] != '0')
	return out
}

func (t *usualText) whole() int64 {
	n, err := strconv.ParseInt(t.digits(), 10, 64)
	t.usual = t.usual && err == nil
	return n
}

func (t *usualText) decimal() float64 {
	text := t.left
	_ = t.digits()
	if strings.HasPrefix(t.left, ".") {
		t.left = t.left[1:]
		whole := t.usual
		n := len(t.left)
		_ = t.digits()
		t.usual = whole && len(t.left) < n // zeros may come first here
	}
	f, err := strconv.ParseFloat(text[:len(text)-len(t.left)], 64)
	t.usual = t.usual && err == nil
	return f
}
