package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What becomes of a start is told by lines, by their end, or by the caller's
// patience.
func TestAwaitReady(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		report string
		open   bool
		ready  bool
		err    error
	}{
		{"the guest runs", t.Context(), "web: preparing\nready\n", true, true, nil},
		{"it has ended", t.Context(), "web: preparing\n", false, false, nil},
		{"the caller gave up", ended, "web: preparing\n", true, false, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.WriteString(c.report); err != nil {
				t.Fatal(err)
			}
			if !c.open {
				_ = w.Close()
			}
			stop := context.AfterFunc(c.ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
			defer stop()
			ready, err := awaitReady(c.ctx, r, func(string) {})
			if ready != c.ready || !errors.Is(err, c.err) {
				t.Errorf("%v, %v", ready, err)
			}
		})
	}
}

// A log that has grown large is put aside, and what is shown is what came since.
func TestLog(t *testing.T) {
	d := Directories{Data: t.TempDir()}
	if err := os.WriteFile(d.LogFile(), []byte(strings.Repeat("old\n", maxLog/4+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		f, start, err := openLog(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new\x1b\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := logSince(d.LogFile(), start); !slices.Equal(got, []string{"new\x1b"}) {
			t.Errorf("round %d: %q", round, got)
		}
	}
	if _, err := os.Stat(filepath.Join(d.Data, oldLogFile)); err != nil {
		t.Error(err)
	}
}
