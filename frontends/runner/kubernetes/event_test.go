package kubernetes

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/reconcile/live"
)

// The API server refuses a note or a reason that is too long, and an event that
// is refused would keep all later ones from being told.
func TestLongEvent(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 2000), "x" + strings.Repeat("ü", 2000)} {
		e := newEvent(live.Event{Action: live.ActionStatus, Reason: long, Note: long}, time.Unix(1, 0), 1)
		o := e.object("lab", "web", "1")
		for field, limit := range map[string]int{"note": 1024, "reason": 128} {
			got, ok := o[field].(string)
			if !ok || len(got) > limit || len(got) < limit-4 || !utf8.ValidString(got) {
				t.Errorf("%s has %d bytes, valid UTF-8: %v; want at most %d", field, len(got), utf8.ValidString(got), limit)
			}
		}
	}
}
