package qmp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// Tests with a fake monitor run in synctest bubbles: time is simulated, and a
// goroutine that remains at the end fails the test.

// connect returns a client of a fake monitor. The caller ends both with the
// returned function.
func connect(t testing.TB, so qmptest.Options, co qmp.Options) (*qmp.Client, *qmptest.Server, func()) {
	t.Helper()
	near, s := qmptest.Pipe(so)
	c, err := qmp.NewClient(context.Background(), near, co)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	return c, s, func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s.Close()
	}
}

// within returns a context that ends after a (simulated) time.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func wantError(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error is %v, want %v", err, target)
		}
	}
}

// answers returns a handler that returns the value.
func answers(value any) qmptest.Handler { return func(c *qmptest.Call) { c.Return(value) } }

// ignores is a handler that never answers.
func ignores(*qmptest.Call) {}

var status = map[string]any{"running": true, "status": "running", "singlestep": false}

func TestGreetingAndResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{
			Version:      [3]int{9, 1, 2},
			Capabilities: []string{"oob"},
			Handlers:     map[string]qmptest.Handler{"query-status": answers(status)},
		}, qmp.Options{Handshake: time.Second})
		defer end()
		if got := c.Greeting(); got.Version.String() != "9.1.2" || !got.Offers("oob") || got.Version.Package != "qmptest" {
			t.Errorf("greeting is %+v", got)
		}
		got, err := qmp.Do(t.Context(), c, qmp.QueryStatus{})
		if want := (qmp.Status{Running: true, Status: qmp.RunStateRunning}); err != nil || got != want {
			t.Errorf("got %+v and %v, want %+v", got, err, want)
		}
		if got := fmt.Sprint(s.Received()); got != "[qmp_capabilities query-status]" {
			t.Errorf("received %s", got)
		}
		if c.OOB() || c.Err() != nil {
			t.Errorf("OOB %t, Err %v", c.OOB(), c.Err())
		}
	})
}

func TestHandshakeFailures(t *testing.T) {
	refuse := func(c *qmptest.Call) { c.Fail("GenericError", "no") }
	for _, tc := range []struct {
		name   string
		server func(far net.Conn) *qmptest.Server
		want   []error
	}{
		{"another client holds the monitor", func(far net.Conn) *qmptest.Server {
			return qmptest.Start(far, qmptest.Options{Silent: true})
		}, []error{qmp.ErrNoGreeting, context.DeadlineExceeded}},
		{"negotiation is refused", func(far net.Conn) *qmptest.Server {
			return qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{"qmp_capabilities": refuse}})
		}, []error{qmp.ErrGeneric}},
		{"negotiation is not answered", func(far net.Conn) *qmptest.Server {
			return qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{"qmp_capabilities": ignores}})
		}, []error{context.DeadlineExceeded}},
		{"the connection ends in the greeting", func(far net.Conn) *qmptest.Server {
			s := qmptest.Start(far, qmptest.Options{Silent: true})
			_, _ = s.Write([]byte(`{"QMP": {"ver`))
			s.Hangup()
			return s
		}, []error{qmp.ErrDisconnected, io.ErrUnexpectedEOF}},
		{"something else answers", func(far net.Conn) *qmptest.Server {
			s := qmptest.Start(far, qmptest.Options{Silent: true})
			_, _ = s.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			return s
		}, []error{qmp.ErrProtocol}},
		{"the greeting has another shape", func(far net.Conn) *qmptest.Server {
			s := qmptest.Start(far, qmptest.Options{Silent: true})
			_, _ = s.Write([]byte(`{"QMP": {"version": 7}}` + "\n"))
			return s
		}, []error{qmp.ErrProtocol}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				served := make(chan *qmptest.Server, 1)
				go func() { served <- tc.server(far) }()
				c, err := qmp.NewClient(t.Context(), near, qmp.Options{Handshake: time.Minute})
				if err == nil {
					_ = c.Close()
					t.Error("no error")
				}
				wantError(t, err, tc.want...)
				(<-served).Close()
			})
		})
	}
}

// An event may come before the reply to qmp_capabilities. go-qemu takes it for
// that reply, and all replies for those of the command before (go-qemu #210).
func TestEventBeforeTheHandshakeReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := connect(t, qmptest.Options{
			Handlers:    map[string]qmptest.Handler{"query-status": answers(status)},
			BeforeReply: func(s *qmptest.Server) { s.Emit("RESUME", nil) },
		}, qmp.Options{})
		defer end()
		got, err := qmp.Do(t.Context(), c, qmp.QueryStatus{})
		if err != nil || !got.Running {
			t.Errorf("got %+v and %v", got, err)
		}
	})
}

func TestRefusalsKeepTheirClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{
			"device_del": func(c *qmptest.Call) { c.Fail("DeviceNotFound", "Device 'x' not found") },
		}}, qmp.Options{})
		defer end()
		_, err := qmp.Do(t.Context(), c, qmp.DeviceDel{ID: "x"})
		wantError(t, err, qmp.ErrDeviceNotFound, &qmp.Error{Command: "device_del"})
		if errors.Is(err, qmp.ErrGeneric) {
			t.Errorf("%v is also a generic error", err)
		}
		if got, want := err.Error(), "qmp: device_del: Device 'x' not found (DeviceNotFound)"; got != want {
			t.Errorf("text is %q, want %q", got, want)
		}
		_, err = c.Execute(t.Context(), "no-such", nil)
		wantError(t, err, qmp.ErrCommandNotFound)
	})
}

func TestArgumentsThatAreNoObjectAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		for name, args := range map[string]any{
			"array":       []int{1},
			"broken":      json.RawMessage(`{"a":`),
			"unencodable": func() {},
			"conflict":    qmp.DeviceAdd{Driver: "a", Properties: map[string]any{"driver": "b"}},
		} {
			if _, err := c.Execute(t.Context(), "x", args); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := c.Execute(t.Context(), "", nil); err == nil {
			t.Error("no name: no error")
		}
		if n := len(s.Received()); n != 1 {
			t.Errorf("server received %q", s.Received())
		}
		if c.Err() != nil {
			t.Errorf("connection ended: %v", c.Err())
		}
	})
}

func TestLateReplyIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan *qmptest.Call, 1)
		c, _, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{
			"slow":         func(c *qmptest.Call) { slow <- c },
			"query-status": answers(status),
		}}, qmp.Options{})
		defer end()
		ctx, cancel := within(time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Execute(ctx, "slow", nil)
		wantError(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("call ended after %v", took)
		}
		for range 3 { // the late reply comes between these
			if st, err := qmp.Do(t.Context(), c, qmp.QueryStatus{}); err != nil || !st.Running {
				t.Errorf("got %+v and %v", st, err)
			}
			select {
			case call := <-slow:
				call.Return("late")
			default:
			}
		}
	})
}

func TestEndedContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		why := errors.New("the user gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		_, err := c.Execute(ctx, "x", nil)
		wantError(t, err, context.Canceled, why)
		if len(s.Received()) != 1 {
			t.Errorf("server received %q", s.Received())
		}
	})
}

// While the server does not read, a call can end without a trace, and so can
// those that wait for their turn to write.
func TestUnwrittenCommandLeavesTheConnectionUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c, s, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{
			"hang":         func(c *qmptest.Call) { <-hang; c.Return(nil) },
			"query-status": answers(status),
		}}, qmp.Options{})
		defer end()
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := c.Execute(t.Context(), "hang", nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		// The first of these gets to write and is stuck with it, see net.Pipe.
		for i := range 3 {
			calls.Go(func() {
				ctx, cancel := within(time.Duration(i+1) * time.Second)
				defer cancel()
				_, err := c.Execute(ctx, "never-seen", nil)
				wantError(t, err, context.DeadlineExceeded)
			})
		}
		time.Sleep(time.Minute)
		close(hang)
		calls.Wait()
		if st, err := qmp.Do(t.Context(), c, qmp.QueryStatus{}); err != nil || !st.Running {
			t.Errorf("got %+v and %v", st, err)
		}
		if got := fmt.Sprint(s.Received()); got != "[qmp_capabilities hang query-status]" {
			t.Errorf("received %s", got)
		}
	})
}

// stingy is a connection whose other side takes only so many bytes.
type stingy struct {
	net.Conn
	takes chan int // length of what is let through by one Write; blocks when empty
	late  chan struct{}
	once  *sync.Once
}

func (s stingy) Write(b []byte) (int, error) {
	select {
	case n := <-s.takes:
		n, err := s.Conn.Write(b[:min(n, len(b))])
		if err != nil || n == len(b) {
			return n, err
		}
		<-s.late
		return n, &net.OpError{Op: "write", Err: context.DeadlineExceeded}
	case <-s.late:
		return 0, &net.OpError{Op: "write", Err: context.DeadlineExceeded}
	}
}

func (s stingy) SetWriteDeadline(d time.Time) error {
	if !d.IsZero() {
		s.once.Do(func() { close(s.late) })
	}
	return nil
}

func TestPartialWriteEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, s := qmptest.Pipe(qmptest.Options{})
		defer s.Close()
		conn := stingy{near, make(chan int, 2), make(chan struct{}), new(sync.Once)}
		conn.takes <- 1000
		c, err := qmp.NewClient(context.Background(), conn, qmp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		events := c.Subscribe(1)
		conn.takes <- 7
		ctx, cancel := within(time.Second)
		defer cancel()
		_, err = c.Execute(ctx, "x", nil)
		wantError(t, err, qmp.ErrPartialWrite, context.DeadlineExceeded)
		<-c.Done()
		wantError(t, c.Err(), qmp.ErrPartialWrite)
		_, err = events.Next(t.Context())
		wantError(t, err, qmp.ErrPartialWrite)
		_, err = c.Execute(t.Context(), "y", nil)
		wantError(t, err, qmp.ErrPartialWrite)
		wantError(t, c.Close())
		wantError(t, c.Err(), qmp.ErrPartialWrite) // the first reason stays
	})
}

func TestConnectionLostTellsEverybody(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(*qmptest.Server)
		want  []error
	}{
		{"hangup", func(s *qmptest.Server) { s.Hangup() }, []error{qmp.ErrDisconnected, io.EOF}},
		{"half a line", func(s *qmptest.Server) {
			_, _ = s.Write([]byte(`{"return": {`))
			s.Hangup()
		}, []error{qmp.ErrDisconnected, io.ErrUnexpectedEOF}},
		{"garbage", func(s *qmptest.Server) { _, _ = s.Write([]byte("\x00\xff garbage\n")) }, []error{qmp.ErrProtocol}},
		{"no message", func(s *qmptest.Server) { _, _ = s.Write([]byte("{}\n")) }, []error{qmp.ErrProtocol}},
		{"reply to nobody", func(s *qmptest.Server) { _, _ = s.Write([]byte(`{"return":{},"id":77}` + "\n")) }, []error{qmp.ErrProtocol}},
		{"foreign id", func(s *qmptest.Server) { _, _ = s.Write([]byte(`{"return":{},"id":"a"}` + "\n")) }, []error{qmp.ErrProtocol}},
		{"second greeting", func(s *qmptest.Server) { _, _ = s.Write([]byte(`{"QMP":{}}` + "\n")) }, []error{qmp.ErrProtocol}},
		{"odd event", func(s *qmptest.Server) { _, _ = s.Write([]byte(`{"event":{}}` + "\n")) }, []error{qmp.ErrProtocol}},
		{"odd time", func(s *qmptest.Server) { _, _ = s.Write([]byte(`{"event":"A","timestamp":1}` + "\n")) }, []error{qmp.ErrProtocol}},
		{"too large", func(s *qmptest.Server) {
			_, _ = s.Write([]byte(`{"event":"` + strings.Repeat("A", 5000) + `"}` + "\n"))
		}, []error{qmp.ErrTooLarge}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, end := connect(t, qmptest.Options{Default: ignores}, qmp.Options{MaxMessage: 4000})
				defer end()
				events := c.Subscribe(1, "B")
				var waiting sync.WaitGroup
				for range 3 {
					waiting.Go(func() {
						_, err := c.Execute(context.Background(), "x", nil)
						wantError(t, err, tc.want...)
					})
				}
				waiting.Go(func() {
					_, err := events.Next(context.Background())
					wantError(t, err, tc.want...)
				})
				synctest.Wait()
				tc.fault(s)
				waiting.Wait()
				<-c.Done()
				wantError(t, c.Err(), tc.want...)
				wantError(t, events.Err(), tc.want...)
				wantError(t, c.Subscribe(1).Err(), tc.want...)
				_, err := c.Execute(t.Context(), "x", nil)
				wantError(t, err, tc.want...)
			})
		})
	}
}

// QEMU cannot name the id of a command that its parser refuses.
func TestRefusalWithoutIDBelongsToTheOldestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{Default: ignores}, qmp.Options{})
		defer end()
		results := make([]chan error, 3)
		for i := range results {
			results[i] = make(chan error, 1)
			go func() {
				_, err := c.Execute(t.Context(), fmt.Sprintf("call%d", i), nil)
				results[i] <- err
			}()
			synctest.Wait() // they are written in this order
		}
		for i := range results {
			_, _ = s.Write([]byte(`{"error":{"class":"GenericError","desc":"JSON parse error"}}` + "\r\n"))
			wantError(t, <-results[i], &qmp.Error{Command: fmt.Sprintf("call%d", i), Class: "GenericError"})
		}
		if c.Err() != nil {
			t.Error(c.Err())
		}
	})
}

func TestMessageOfAnySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("\"{[,\n", 1<<20)
		c, _, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{"large": answers(large)}}, qmp.Options{})
		defer end()
		raw, err := c.Execute(t.Context(), "large", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(raw, &got); err != nil || got != large {
			t.Errorf("got %d bytes and %v, want %d", len(got), err, len(large))
		}
	})
}

func TestResultThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := connect(t, qmptest.Options{Default: answers([]int{1})}, qmp.Options{})
		defer end()
		_, err := qmp.Do(t.Context(), c, qmp.QueryStatus{})
		if err == nil || !strings.Contains(err.Error(), "query-status: decode result") {
			t.Errorf("got %v", err)
		}
		if raw, err := qmp.Do(t.Context(), c, qmp.QOMGet{}); err != nil || string(raw) != "[1]" {
			t.Errorf("got %s and %v", raw, err)
		}
	})
}

func TestCloseAlwaysReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c, s, _ := connect(t, qmptest.Options{Default: func(*qmptest.Call) { <-hang }}, qmp.Options{})
		c.Subscribe(1) // nobody reads it
		var waiting sync.WaitGroup
		for range 3 { // one waits for its reply, one is stuck writing, one waits for its turn
			waiting.Go(func() {
				_, err := c.Execute(context.Background(), "x", nil)
				wantError(t, err, qmp.ErrClosed)
			})
		}
		synctest.Wait()
		for range 2 {
			waiting.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		wantError(t, c.Err(), qmp.ErrClosed)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		close(hang)
		s.Close()
	})
}

// When Close returns, nothing of the client is left to run.
func TestCloseLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c, s, _ := connect(t, qmptest.Options{}, qmp.Options{})
			sub := c.Subscribe(1)
			_ = c.Close()
			select {
			case <-c.Done():
			default:
				t.Fatal("Done is still open")
			}
			wantError(t, c.Err(), qmp.ErrClosed)
			wantError(t, sub.Err(), qmp.ErrClosed)
			s.Close()
		}
	})
}

func TestSchemaIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := true
		c, s, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{"query-qmp-schema": func(c *qmptest.Call) {
			if fail {
				fail = false
				c.Fail("GenericError", "not now")
				return
			}
			time.Sleep(time.Second)
			c.Return([]map[string]any{
				{"name": "stop", "meta-type": "command", "arg-type": "0", "ret-type": "0"},
				{"name": "0", "meta-type": "object", "members": []any{}},
			})
		}}}, qmp.Options{})
		defer end()
		if _, err := c.Schema(t.Context()); !errors.Is(err, qmp.ErrGeneric) {
			t.Errorf("got %v", err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				schema, err := c.Schema(t.Context())
				if err != nil || !schema.HasCommand("stop") || schema.HasCommand("0") || schema.HasEvent("stop") {
					t.Errorf("got %v and %v", schema, err)
				}
			})
		}
		all.Go(func() { // ends before the others
			ctx, cancel := within(time.Millisecond)
			defer cancel()
			_, err := c.Schema(ctx)
			wantError(t, err, context.DeadlineExceeded)
		})
		all.Wait()
		// The impatient one may have been the one to ask.
		if n := len(s.Received()); n > 4 {
			t.Errorf("received %q", s.Received())
		}
	})
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	cmd := qmp.SetPassword{Protocol: "vnc", Password: "geheim"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, cmd); strings.Contains(text, "geheim") {
			t.Errorf("%s prints %q", format, text)
		}
	}
}
