package qmp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// TestClientProperties runs random sequences of calls, cancellations, replies
// in any order, events, pauses and failures, and compares the client with a
// model after each step. The bubble fails the test if a goroutine remains.
func TestClientProperties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The plain TB has no Deadline method, which must not be called in a bubble.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			m := newModel(t)
			defer m.abort() // so that a failing sequence can be shrunk
			t.Repeat(map[string]func(*rapid.T){
				"":          m.check,
				"call":      m.call,
				"cancel":    m.cancel,
				"reply":     m.reply,
				"event":     m.event,
				"next":      m.next,
				"pass time": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second) },
				"fault":     m.fault,
			})
			m.settle(t)
		})
	})
}

// model is what should be true about one client.
type model struct {
	client *qmp.Client
	server *qmptest.Server
	sub    *qmp.Subscription

	mu       sync.Mutex
	received []*qmptest.Call // unanswered calls on the server's side

	calls    []*modelCall
	sent     int // events
	held     []int
	capacity int
	dropped  uint64
	missed   uint64 // before held[0]
	over     error  // why the connection has ended, nil while it is up
}

// modelCall is one call: what was answered, and what came of it.
type modelCall struct {
	number int
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	result json.RawMessage
	err    error

	answered string // "return", "fail" or ""
	tooLate  bool   // it was answered after the context had ended
	checked  bool
}

func newModel(t *rapid.T) *model {
	m := &model{capacity: rapid.IntRange(1, 4).Draw(t, "capacity")}
	o := qmptest.Options{Default: func(c *qmptest.Call) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.received = append(m.received, c)
	}}
	if rapid.Bool().Draw(t, "oob") {
		o.Capabilities = []string{"oob"}
	}
	near, far := net.Pipe()
	m.server = qmptest.Start(far, o)
	var err error
	if m.client, err = qmp.NewClient(context.Background(), near, qmp.Options{OOB: true}); err != nil {
		t.Fatal(err)
	}
	m.sub = m.client.Subscribe(m.capacity)
	return m
}

func (m *model) call(t *rapid.T) {
	call := &modelCall{number: len(m.calls), done: make(chan struct{})}
	call.ctx, call.cancel = context.WithCancel(context.Background())
	if seconds := rapid.IntRange(0, 60).Draw(t, "deadline"); seconds > 0 {
		call.ctx, call.cancel = context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	}
	m.calls = append(m.calls, call)
	var options []qmp.CallOption
	if m.client.OOB() && rapid.Bool().Draw(t, "oob") {
		options = append(options, qmp.OutOfBand())
	}
	go func() {
		defer close(call.done)
		call.result, call.err = m.client.Execute(call.ctx, "x", map[string]int{"n": call.number}, options...)
	}()
}

func (m *model) cancel(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("no calls")
	}
	rapid.SampledFrom(m.calls).Draw(t, "call").cancel()
}

func (m *model) reply(t *rapid.T) {
	m.mu.Lock()
	n := len(m.received)
	m.mu.Unlock()
	if n == 0 || m.over != nil {
		t.Skip("nothing to reply to")
	}
	m.answer(t, rapid.IntRange(0, n-1).Draw(t, "which"), rapid.Bool().Draw(t, "refused"))
}

func (m *model) answer(t *rapid.T, index int, refused bool) {
	m.mu.Lock()
	received := m.received[index]
	m.received = slices.Delete(m.received, index, index+1)
	m.mu.Unlock()
	var args struct{ N int }
	if err := received.Arguments(&args); err != nil {
		t.Fatal(err)
	}
	call := m.calls[args.N]
	call.tooLate = call.ctx.Err() != nil
	if refused {
		call.answered = "fail"
		received.Fail("Class", fmt.Sprint(args.N))
	} else {
		call.answered = "return"
		received.Return(args.N)
	}
}

func (m *model) event(t *rapid.T) {
	if m.over != nil {
		t.Skip("connection has ended")
	}
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		if !m.server.Emit("E", m.sent) {
			t.Fatal("event was not taken")
		}
		m.held = append(m.held, m.sent)
		m.sent++
		if len(m.held) > m.capacity {
			m.held = m.held[1:]
			m.dropped++
			m.missed++
		}
	}
}

func (m *model) next(t *rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	e, err := m.sub.Next(ctx)
	switch {
	case len(m.held) > 0:
		if err != nil || string(e.Data) != fmt.Sprint(m.held[0]) || e.Missed != m.missed {
			t.Fatalf("got event %s after %d missed, and %v; want %d after %d", e.Data, e.Missed, err, m.held[0], m.missed)
		}
		m.held, m.missed = m.held[1:], 0
	case m.over != nil:
		if !errors.Is(err, m.over) {
			t.Fatalf("subscription ended with %v, want %v", err, m.over)
		}
	case !errors.Is(err, context.DeadlineExceeded):
		t.Fatalf("got event %s and %v, want none", e.Data, err)
	}
}

func (m *model) fault(t *rapid.T) {
	if m.over != nil || rapid.IntRange(0, 9).Draw(t, "luck") > 0 {
		t.Skip("not now")
	}
	switch rapid.SampledFrom([]string{"close", "hangup", "garbage", "half a line"}).Draw(t, "fault") {
	case "close":
		m.over = qmp.ErrClosed
		_ = m.client.Close()
	case "hangup":
		m.over = qmp.ErrDisconnected
		m.server.Hangup()
	case "garbage":
		m.over = qmp.ErrProtocol
		_, _ = m.server.Write([]byte("garbage\n"))
	case "half a line":
		m.over = qmp.ErrDisconnected
		_, _ = m.server.Write([]byte(`{"return":`))
		m.server.Hangup()
	}
}

// check compares what has happened with what should have.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	for _, call := range m.calls {
		call.check(t, m.over)
	}
	if got := m.sub.Dropped(); got != m.dropped {
		t.Fatalf("subscription dropped %d events, want %d", got, m.dropped)
	}
	if m.over == nil != (m.client.Err() == nil) || m.over != nil && !errors.Is(m.client.Err(), m.over) {
		t.Fatalf("connection ended with %v, want %v", m.client.Err(), m.over)
	}
}

func (c *modelCall) check(t *rapid.T, over error) {
	if c.checked {
		return
	}
	select {
	case <-c.done:
		c.checked = true
	default:
		if c.ctx.Err() != nil || over != nil || c.answered != "" {
			t.Fatalf("call %d waits; context %v, connection %v, answered %q", c.number, c.ctx.Err(), over, c.answered)
		}
		return
	}
	var refusal *qmp.Error
	switch {
	case c.err == nil:
		if c.answered != "return" || string(c.result) != fmt.Sprint(c.number) {
			t.Fatalf("call %d got %s, answered %q", c.number, c.result, c.answered)
		}
	case errors.As(c.err, &refusal):
		if c.answered != "fail" || refusal.Desc != fmt.Sprint(c.number) {
			t.Fatalf("call %d was refused with %v, answered %q", c.number, c.err, c.answered)
		}
	case c.answered != "" && !c.tooLate:
		t.Fatalf("call %d was answered and got %v", c.number, c.err)
	case c.ctx.Err() != nil && errors.Is(c.err, c.ctx.Err()):
	case over != nil && errors.Is(c.err, over):
	default:
		t.Fatalf("call %d failed with %v; context %v, connection %v", c.number, c.err, c.ctx.Err(), over)
	}
}

// settle lets the server answer everything, after which no call may wait, and
// ends both sides.
func (m *model) settle(t *rapid.T) {
	for m.over == nil {
		synctest.Wait()
		m.mu.Lock()
		n := len(m.received)
		m.mu.Unlock()
		if n == 0 {
			break
		}
		m.answer(t, 0, false)
	}
	m.check(t)
	for _, call := range m.calls {
		if !call.checked {
			t.Fatalf("call %d was never sent", call.number)
		}
	}
	for len(m.held) > 0 {
		m.next(t)
	}
	m.next(t)
}

func (m *model) abort() {
	for _, call := range m.calls {
		call.cancel()
	}
	_ = m.client.Close()
	m.server.Close()
	for _, call := range m.calls {
		<-call.done
	}
}
