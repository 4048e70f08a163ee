package qmp_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

func TestOutOfBandIsNegotiatedOnlyIfWantedAndOffered(t *testing.T) {
	for _, tc := range []struct {
		name    string
		offered []string
		wanted  bool
		granted bool
	}{
		{"wanted and offered", []string{"oob"}, true, true},
		{"not offered", nil, true, false},
		{"not wanted", []string{"oob"}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _, end := connect(t, qmptest.Options{
					Capabilities: tc.offered,
					Handlers:     map[string]qmptest.Handler{"query-yank": func(c *qmptest.Call) { c.Return([]bool{c.OOB()}) }},
				}, qmp.Options{OOB: tc.wanted})
				defer end()
				if c.OOB() != tc.granted {
					t.Errorf("granted %t", c.OOB())
				}
				raw, err := c.Execute(t.Context(), "query-yank", nil, qmp.OutOfBand())
				switch {
				case !tc.granted:
					wantError(t, err, qmp.ErrNoOutOfBand)
				case err != nil || string(raw) != "[true]":
					t.Errorf("got %s and %v", raw, err)
				}
			})
		})
	}
}

// Where commands overtake each other, order says nothing: each has an id.
func TestEachCommandHasAnIDWithOutOfBand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		c, _, end := connect(t, qmptest.Options{
			Capabilities: []string{"oob"},
			Default:      func(c *qmptest.Call) { ids = append(ids, string(c.ID())); c.Return(nil) },
		}, qmp.Options{OOB: true})
		defer end()
		do(t, t.Context(), c, qmp.Stop{})
		do(t, t.Context(), c, qmp.Yank{}, qmp.OutOfBand())
		if len(ids) != 2 || ids[0] == "" || ids[1] == "" || ids[0] == ids[1] {
			t.Errorf("ids are %q", ids)
		}
	})
}

// A command that QEMU has not seen does not count as one that waits there.
func TestUnwrittenCommandsTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c, _, end := connect(t, qmptest.Options{
			Capabilities: []string{"oob"},
			Default:      func(c *qmptest.Call) { <-hang; c.Return(nil) },
		}, qmp.Options{OOB: true})
		defer end()
		var first sync.WaitGroup
		first.Go(func() { do(t, t.Context(), c, qmp.Yank{}, qmp.OutOfBand()) })
		synctest.Wait()
		for range 10 {
			ctx, cancel := within(time.Second)
			_, err := qmp.Do(ctx, c, qmp.Stop{})
			wantError(t, err, context.DeadlineExceeded)
			cancel()
		}
		close(hang)
		first.Wait()
		do(t, t.Context(), c, qmp.Stop{})
	})
}

// QEMU stops reading, and so hears no out-of-band command, when eight commands
// wait. The client lets seven get there.
func TestOutOfBandIsNotStuckBehindManyCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan *qmptest.Call, 100)
		queue := func(c *qmptest.Call) { calls <- c }
		c, _, end := connect(t, qmptest.Options{
			Capabilities: []string{"oob"},
			Handlers:     map[string]qmptest.Handler{"yank": answers(nil), "slow": queue},
		}, qmp.Options{OOB: true})
		defer end()
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if _, err := c.Execute(t.Context(), "slow", nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		impatient, cancel := within(time.Second)
		defer cancel()
		waiting.Go(func() {
			_, err := c.Execute(impatient, "slow", nil)
			wantError(t, err, context.DeadlineExceeded)
		})
		time.Sleep(time.Minute)
		if len(calls) != 7 {
			t.Errorf("%d commands wait in QEMU", len(calls))
		}
		if _, err := qmp.Do(t.Context(), c, qmp.Yank{}, qmp.OutOfBand()); err != nil {
			t.Error(err)
		}
		for range 20 {
			(<-calls).Return(nil)
		}
		waiting.Wait()
	})
}
