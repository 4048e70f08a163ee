package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
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
			g := beginProgress(io.Discard, false, "")
			defer g.end()
			ready, err := awaitReady(c.ctx, r, g)
			if ready != c.ready || !errors.Is(err, c.err) {
				t.Errorf("%v, %v", ready, err)
			}
		})
	}
}

// A log that has grown large is put aside, and what is shown is what came since.
func TestLog(t *testing.T) {
	d := directories{machine: t.TempDir()}
	if err := os.WriteFile(d.logFile(), []byte(strings.Repeat("old\n", maxLog/4+1)), 0o600); err != nil {
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
		var shown strings.Builder
		(&program{stderr: &shown}).showLog(d.logFile(), start)
		if shown.String() != "new\\u001b\n" {
			t.Errorf("round %d: shown %q", round, shown.String())
		}
	}
	if _, err := os.Stat(filepath.Join(d.machine, oldLogName)); err != nil {
		t.Error(err)
	}
}
