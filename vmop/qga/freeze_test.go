package qga_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

// freezeFaults are what can go wrong with a freezer.
type freezeFaults struct {
	refuse, stuck bool // the freezing fails halfway; it is never answered
	deaf          bool // the thawing is never answered
	restarts      bool // the first request to thaw is lost
}

// freezer is an agent that can freeze.
type freezer struct {
	freezeFaults
	mu     sync.Mutex
	frozen int
}

func (f *freezer) agent() *qgatest.Agent {
	locked := func(do func() (any, error)) qgatest.Handler {
		return func(qgatest.Request) (any, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return do()
		}
	}
	return &qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-fsfreeze-freeze": locked(func() (any, error) {
			f.frozen = 2
			switch {
			case f.refuse:
				return nil, &qgatest.Error{Class: qga.ClassGeneric, Desc: "no"}
			case f.stuck:
				return nil, qgatest.ErrSilent
			}
			return f.frozen, nil
		}),
		"guest-fsfreeze-thaw": locked(func() (any, error) {
			if f.deaf || f.restarts {
				f.restarts = false
				return nil, qgatest.ErrSilent
			}
			n := f.frozen
			f.frozen = 0
			return n, nil
		}),
	}}
}

// Whatever happens while a guest is frozen, it is thawed, or the caller is told.
func TestFrozen(t *testing.T) {
	mine := errors.New("mine")
	for _, tt := range []struct {
		name   string
		faults freezeFaults
		do     func(context.Context) error
		err    error
		frozen int
		calls  int
	}{
		{"well", freezeFaults{}, func(context.Context) error { return nil }, nil, 0, 1},
		{"a failure", freezeFaults{}, func(context.Context) error { return mine }, mine, 0, 1},
		{"too long", freezeFaults{}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded, 0, 1},
		{"refused halfway", freezeFaults{refuse: true}, nil, new(qga.Error), 0, 0},
		{"never frozen", freezeFaults{stuck: true}, nil, qga.ErrNoAnswer, 0, 0},
		{"an agent that was started again", freezeFaults{restarts: true}, func(context.Context) error { return nil }, nil, 0, 1},
		{"never thawed", freezeFaults{deaf: true}, func(context.Context) error { return nil }, qga.ErrStillFrozen, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &freezer{freezeFaults: tt.faults}
				c := connect(t, f.agent())
				calls := 0
				err := c.Frozen(t.Context(), time.Minute, func(ctx context.Context, n int) error {
					if calls++; n != 2 {
						t.Errorf("%d are frozen", n)
					}
					return tt.do(ctx)
				})
				var refusal *qga.Error
				switch {
				case tt.err == nil && err != nil,
					tt.name == "refused halfway" && !errors.As(err, &refusal),
					tt.name != "refused halfway" && !errors.Is(err, tt.err):
					t.Errorf("%v, want %v", err, tt.err)
				}
				if f.frozen != tt.frozen || calls != tt.calls {
					t.Errorf("%d are frozen, %d calls", f.frozen, calls)
				}
			})
		})
	}
	t.Run("a panic", func(t *testing.T) {
		f := &freezer{}
		c := connect(t, f.agent())
		defer func() {
			if recover() == nil || f.frozen > 0 {
				t.Errorf("%d are frozen", f.frozen)
			}
		}()
		_ = c.Frozen(t.Context(), time.Minute, func(context.Context, int) error { panic("mine") })
	})
	if err := connect(t, new(qgatest.Agent)).Frozen(t.Context(), 0, nil); err == nil {
		t.Error("frozen without a limit")
	}
}
