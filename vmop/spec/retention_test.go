package spec_test

import (
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

func TestRetentionEnds(t *testing.T) {
	const layout = time.RFC3339Nano
	for _, test := range []struct{ retention, lastUsed, until string }{
		{"PT1h", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		{"PT1m", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
		{"PT0S", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"PT1.5S", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z"},
		{"P1DT12H30M", "2026-01-01T00:00:00Z", "2026-01-02T12:30:00Z"},
		// VM-Operator accepts these three and fails when it uses them (W24).
		{"P1Y", "2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z"},
		{"P1M", "2026-01-31T08:00:00Z", "2026-02-28T08:00:00Z"},
		{"P2W", "2026-01-31T08:00:00Z", "2026-02-14T08:00:00Z"},
		{"P1Y2M3W4DT5h6m7s", "2026-01-01T00:00:00Z", "2027-03-26T05:06:07Z"},
		{"P1M", "2026-01-31T23:00:00-05:00", "2026-03-01T04:00:00Z"},
		{"2030-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2030-01-01T00:00:00Z"},
		{"2030-01-01T00:00:00+0100", "2026-01-01T00:00:00Z", "2029-12-31T23:00:00Z"},
		{"2030-01-01T00:00:00-01", "2026-01-01T00:00:00Z", "2030-01-01T01:00:00Z"},
		{"2030-01-01t00:00:00.25+02:00", "2026-01-01T00:00:00Z", "2029-12-31T22:00:00.25Z"},
	} {
		r, err := spec.ParseRetention(test.retention)
		if err != nil {
			t.Error(err)
			continue
		}
		lastUsed, err := time.Parse(layout, test.lastUsed)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Until(lastUsed).UTC().Format(layout); got != test.until {
			t.Errorf("%s after %s: got %s, want %s", test.retention, test.lastUsed, got, test.until)
		}
	}
}

func TestBadRetentionsAreRefused(t *testing.T) {
	for _, s := range []string{
		"", "P", "PT", "P1DT", "1h", "PT1", "P1H", "PT1D", "P1D1Y", "-PT1H", "P-1D", "PT1.S", "PT1.5H", "p1d",
		"P99999Y", "PT9999999999999H", "P99999999999999999999D", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00",
		"2026-01-01", "2026-01-01T00:00:00+1", "2026-01-01T00:00:00+010", "0001-01-01T00:00:00Z", "PT1H\n",
	} {
		if r, err := spec.ParseRetention(s); err == nil {
			t.Errorf("%q was taken as %+v", s, r)
		}
	}
}

func TestRetentionNeverEndsBeforeLastUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spectest.Retention().Draw(t, "retention")
		r, err := spec.ParseRetention(s)
		if err != nil {
			t.Fatal(err)
		}
		lastUsed := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "lastUsed"), 0)
		later := lastUsed.Add(time.Duration(rapid.Int64Range(0, 1e16).Draw(t, "later")))
		until := r.Until(lastUsed)
		if r.Instant.IsZero() && until.Before(lastUsed) {
			t.Fatalf("%s after %v ends at %v", s, lastUsed, until)
		}
		if r.Until(later).Before(until) {
			t.Fatalf("%s: a later use must not end earlier", s)
		}
	})
}

// Whatever the text is: it is refused, or the resource definition takes it too.
func TestParseRetentionAgreesWithDefinition(t *testing.T) {
	definition := regexp.MustCompile(spec.RetentionPattern(t))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(spectest.Retention(), rapid.StringMatching(`P?[0-9YMWDTHSZ:.+-]{0,12}`)).Draw(t, "text")
		if _, err := spec.ParseRetention(s); err == nil && !definition.MatchString(s) {
			t.Fatalf("%q is taken here but not by the definition", s)
		}
	})
}

// Whatever is written as a retention is refused, or is a time that is not before the last use.
func FuzzParseRetention(f *testing.F) {
	for _, s := range []string{"PT1h", "P2W", "P1Y6MT30S", "PT1.5S", "2026-01-01T00:00:00+01:00", "PT99999999999999999999H", "P-1D", "PT0.000000000000000000001S", "P9999Y", ""} {
		f.Add(s, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, used int64) {
		r, err := spec.ParseRetention(text)
		if err != nil {
			return
		}
		lastUsed := time.Unix(used%(1<<33), 0).UTC() // until the year 2242
		if until := r.Until(lastUsed); (text[0] == 'P' || text[0] == 'p') && until.Before(lastUsed) {
			t.Fatalf("%q after %v is %v", text, lastUsed, until)
		}
	})
}
