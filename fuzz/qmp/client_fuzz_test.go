package qmp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// patience bounds each run, which takes some microseconds.
const patience = 2 * time.Minute

// FuzzClient lets a monitor answer a command with arbitrary bytes and then hang
// up. Whatever they are, the call ends, with the result or a reason that callers
// can tell; the subscription ends; Close returns.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}\n", "null\n", "{\"return\":",
		`{"return":{"running":true,"status":"running"}}` + "\r\n",
		`{"return":[]}` + "\r\n",
		`{"return":{},"id":2}` + "\r\n",
		`{"return":{},"id":99}` + "\r\n",
		`{"error":{"class":"GenericError","desc":"no"}}` + "\r\n",
		`{"event":"STOP","timestamp":{"seconds":1,"microseconds":2}}` + "\r\n" + `{"return":{"running":false}}` + "\r\n",
		`{"QMP":{"version":{},"capabilities":[]}}` + "\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		near, s := qmptest.Pipe(qmptest.Options{Default: func(c *qmptest.Call) {
			_, _ = c.Server.Write(answer)
			c.Server.Hangup()
		}})
		defer s.Close()
		c, err := qmp.NewClient(ctx, near, qmp.Options{MaxMessage: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		events := c.Subscribe(2)
		_, err = qmp.Do(ctx, c, qmp.QueryStatus{})
		if err != nil && ctx.Err() != nil {
			t.Fatalf("call did not end: %v", err)
		}
		for range events.All(ctx) {
		}
		<-c.Done()
		reason := c.Err()
		if events.Err() != reason {
			t.Fatalf("subscription ended with %v, connection with %v", events.Err(), reason)
		}
		if !errors.Is(reason, qmp.ErrDisconnected) && !errors.Is(reason, qmp.ErrProtocol) && !errors.Is(reason, qmp.ErrTooLarge) {
			t.Fatalf("unexpected reason: %v", reason)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
