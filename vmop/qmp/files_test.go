package qmp_test

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// deadline bounds the tests over real sockets; they take a few milliseconds.
const deadline = 2 * time.Minute

func overSockets(t *testing.T, so qmptest.Options) (context.Context, *qmp.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	near, far, err := qmptest.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	s := qmptest.Start(far, so)
	t.Cleanup(s.Close)
	c, err := qmp.NewClient(ctx, near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return ctx, c
}

func TestFilesArriveWithTheirCommand(t *testing.T) {
	var unanswered atomic.Int32
	ctx, c := overSockets(t, qmptest.Options{Handlers: map[string]qmptest.Handler{
		"getfd": func(c *qmptest.Call) {
			var args qmp.GetFD
			if err := c.Arguments(&args); err != nil || len(c.Files) != 1 {
				c.Fail("GenericError", "No file descriptor supplied via SCM_RIGHTS")
				return
			}
			_, _ = io.WriteString(c.Files[0], args.FDName+"\n")
			_ = c.Files[0].Close()
			// QEMU keeps one file: another must not come before this one is used.
			if unanswered.Add(1) != 1 {
				c.Fail("GenericError", "two files at once")
				return
			}
			go func() {
				time.Sleep(time.Millisecond)
				unanswered.Add(-1)
				c.Return(nil)
			}()
		},
		"stop": func(c *qmptest.Call) {
			if len(c.Files) != 0 {
				c.Fail("GenericError", "unexpected file")
				return
			}
			c.Return(nil)
		},
	}})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := qmp.Do(ctx, c, qmp.Stop{}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			r, w, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			name := w.Name()
			if _, err := qmp.Do(ctx, c, qmp.GetFD{FDName: name}, qmp.WithFile(w)); err != nil {
				t.Error(err)
			}
			_ = w.Close()
			// The pipe ends when both the sender and the receiver have closed it.
			if got, err := io.ReadAll(r); err != nil || string(got) != name+"\n" {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
	all.Wait()
	_, err := qmp.Do(ctx, c, qmp.GetFD{FDName: "none"})
	wantError(t, err, qmp.ErrGeneric)
}

func TestClosedFileIsAnErrorOfTheCall(t *testing.T) {
	ctx, c := overSockets(t, qmptest.Options{Default: answers(nil)})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	if _, err := qmp.Do(ctx, c, qmp.GetFD{FDName: "x"}, qmp.WithFile(w)); err == nil {
		t.Error("no error")
	}
	if _, err := qmp.Do(ctx, c, qmp.Stop{}); err != nil {
		t.Errorf("connection is unusable: %v", err)
	}
}

func TestFilesNeedAUnixSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		_, err := qmp.Do(t.Context(), c, qmp.GetFD{FDName: "x"}, qmp.WithFile(os.Stdin))
		wantError(t, err, qmp.ErrNoFiles)
	})
}
