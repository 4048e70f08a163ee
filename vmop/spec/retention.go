package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// +kubebuilder:object:generate=false

// Retention is how long a machine of a pool stays assigned: until an instant,
// or for a calendar duration after its last use.
type Retention struct {
	// Instant is the end of the assignment. If it is not zero, the other
	// fields are.
	Instant time.Time
	// Months is the calendar part of the duration: years count twelve.
	Months int
	// Days is the number of days; weeks count seven.
	Days int
	// Time is the part of the duration that is measured in hours, minutes and
	// seconds.
	Time time.Duration
}

// Longest parts of a duration. They keep every sum within what time.Time can hold and print (the
// year 9999 and a bit); longer ones are not needed.
const (
	maxRetentionMonths = 9999 * 12
	maxRetentionDays   = 9999 * 366
)

// ParseRetention reads the retention of a pool: an instant of RFC 3339, with
// its time zone, or a duration of ISO 8601 such as PT1h, P2W or P1Y6MT30S.
//
// VM-Operator accepts years, months and weeks in its resource definition but
// fails when it uses them; here they are calendar periods, see
// [Retention.Until].
func ParseRetention(s string) (Retention, error) {
	if !strings.HasPrefix(s, "P") {
		t, err := parseInstant(s)
		if err != nil {
			return Retention{}, fmt.Errorf("%q is neither a duration such as PT1h or P7D nor an instant such as 2026-12-31T23:59:59Z", s)
		}
		if t.IsZero() {
			return Retention{}, fmt.Errorf("the instant %q is the beginning of time, which no assignment can end at", s)
		}
		return Retention{Instant: t}, nil
	}
	m := durationPattern().FindStringSubmatch(s)
	if m == nil {
		return Retention{}, fmt.Errorf("%q is not a duration of ISO 8601; write years, months, weeks and days before a T and hours, minutes and seconds after it, as in P1DT12H", s)
	}
	if s == "P" || m[5] == "T" {
		return Retention{}, fmt.Errorf("the duration %q has no number behind its last letter; write PT0S for none", s)
	}
	var r Retention
	months, ok1 := sumOf(maxRetentionMonths, factor{m[1], 12}, factor{m[2], 1})
	days, ok2 := sumOf(maxRetentionDays, factor{m[3], 7}, factor{m[4], 1})
	seconds, ok3 := sumOf(math.MaxInt64/int64(time.Second)-1, factor{m[6], 3600}, factor{m[7], 60}, factor{m[8], 1})
	if !ok1 || !ok2 || !ok3 {
		return Retention{}, fmt.Errorf("the duration %q is too long; its years may be up to 9999 and its hours up to 2562046", s)
	}
	r.Months, r.Days, r.Time = int(months), int(days), time.Duration(seconds)*time.Second
	if f := m[9]; f != "" {
		nanos, err := strconv.ParseInt((f[1:] + "000000000")[:9], 10, 64)
		if err != nil {
			return Retention{}, fmt.Errorf("the fraction of a second in %q: %w", s, err)
		}
		r.Time += time.Duration(nanos)
	}
	return r, nil
}

// parseInstant reads an instant of RFC 3339, and one whose zone has no minutes or
// no colon (+01, +0100), as ISO 8601 and VM-Operator's definition have it.
func parseInstant(s string) (t time.Time, err error) {
	for _, zone := range []string{"Z07:00", "Z0700", "Z07"} {
		// RFC 3339 lets the letters be small, package time does not.
		if t, err = time.Parse("2006-01-02T15:04:05.999999999"+zone, strings.ToUpper(s)); err == nil {
			break
		}
	}
	return t, err
}

// +kubebuilder:object:generate=false

// factor is a number, possibly absent, and what it counts.
type factor struct {
	digits string
	unit   int64
}

// sumOf adds up numbers times their units. It returns false above the limit, without ever
// overflowing.
func sumOf(limit int64, factors ...factor) (int64, bool) {
	var sum int64
	for _, f := range factors {
		if f.digits == "" {
			continue
		}
		n, err := strconv.ParseInt(f.digits, 10, 64)
		if err != nil || n > (limit-sum)/f.unit {
			return 0, false
		}
		sum += n * f.unit
	}
	return sum, true
}

// Until returns the end of an assignment that was last used at the given time.
//
// Months are added first, in UTC, and end on the last day of a shorter month
// (January 31 plus a month is the last day of February); then come days and
// the rest.
func (r Retention) Until(lastUsed time.Time) time.Time {
	if !r.Instant.IsZero() {
		return r.Instant
	}
	t := lastUsed.UTC()
	if r.Months != 0 {
		first := time.Date(t.Year(), t.Month()+time.Month(r.Months), 1,
			t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		t = first.AddDate(0, 0, min(t.Day(), last)-1)
	}
	return t.AddDate(0, 0, r.Days).Add(r.Time)
}
