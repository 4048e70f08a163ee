package live_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
)

// Whatever the balloon does: what is on its way is reported at most every 15
// seconds, the target at once, and nothing is left unreported for longer.
func TestReportRAM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const target = 256 * mib
		now := time.Unix(1_800_000_000, 0)
		var said int64
		var at time.Time
		for range rapid.IntRange(1, 50).Draw(t, "observations") {
			actual := mib * rapid.SampledFrom([]int64{0, 100, 200, 255, 256}).Draw(t, "MiB")
			report, wake := live.ReportRAM(actual, target, said, at, now)
			early := now.Sub(at) < 15*time.Second
			switch {
			case actual == said:
				if report || !wake.IsZero() {
					t.Fatal("no news is reported")
				}
			case actual == target && !report:
				t.Fatal("the target is not reported at once")
			case actual != target && report == early:
				t.Fatalf("reported is %v after %v", report, now.Sub(at))
			case report == !wake.IsZero() || !report && wake.Sub(at) != 15*time.Second:
				t.Fatalf("reported is %v, wake at %v", report, wake)
			}
			if report {
				said, at = actual, now
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "ms")) * time.Millisecond)
		}
	})
}
