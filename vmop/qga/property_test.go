package qga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

// Whatever an agent did before, and whatever a predecessor left on the socket: a
// call that succeeds has its own answer, a call that fails does so before its
// deadline, and once the agent behaves again the next call succeeds; one of the
// next eight, if so many were not answered.
func TestEveryAnswerIsTheCallsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The plain TB has no Deadline method, which must not be called in a bubble.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			var fault, syncFault atomic.Int64 // a qgatest.Fault each; an agent may still be at work
			agent := &qgatest.Agent{
				Handlers: map[string]qgatest.Handler{"echo": echo, "deny": func(qgatest.Request) (any, error) {
					return nil, &qgatest.Error{Class: "GenericError", Desc: "no"}
				}},
				Fault: func(r qgatest.Request) qgatest.Fault {
					if r.Execute == "guest-sync-delimited" {
						return qgatest.Fault(syncFault.Load())
					}
					return qgatest.Fault(fault.Load())
				},
			}
			near, far := net.Pipe()
			served := make(chan struct{})
			go func() { defer close(served); agent.Serve(far) }()
			client := qga.New(near)
			defer func() { _ = client.Close(); <-served }()
			synctest.Wait()

			number, unanswered := 0, 0
			call := func(t *rapid.T) error {
				number++
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				start := time.Now()
				raw, err := client.Execute(ctx, "echo", map[string]int{"n": number})
				if time.Since(start) > time.Second {
					t.Fatalf("call %d took %v", number, time.Since(start))
				}
				if want := fmt.Sprintf(`{"n":%d}`, number); err == nil && string(raw) != want {
					t.Fatalf("got %s, want %s", raw, want)
				}
				var refusal *qga.Error
				if errors.As(err, &refusal) {
					t.Fatalf("call %d got a refusal that is not its own: %v", number, err)
				}
				if unanswered++; err == nil {
					unanswered = 0
				}
				return err
			}
			behave := func(t *rapid.T) {
				// The agent may be about to hold an answer, which Release would come too early for.
				synctest.Wait()
				fault.Store(0)
				syncFault.Store(0)
				agent.Release()
				calls := 1
				if unanswered >= 8 {
					calls = 8
				}
				var err error
				for range calls {
					if err = call(t); err == nil {
						return
					}
				}
				t.Fatal(err)
			}
			faults := []qgatest.Fault{qgatest.None, qgatest.Drop, qgatest.Hold, qgatest.Duplicate, qgatest.Garbage, qgatest.Half}
			if rapid.Bool().Draw(t, "predecessor left half a command") {
				go func() { _, _ = near.Write([]byte(`{"execute":"guest-shutdown","argum`)) }()
				synctest.Wait()
			}
			if rapid.Bool().Draw(t, "predecessor left replies") {
				agent.Send([]byte("{\"return\":{\"n\":1}}\n\xff{\"return\":12}\n{\"return\":"))
			}
			t.Repeat(map[string]func(*rapid.T){
				"call": func(t *rapid.T) {
					fault.Store(int64(rapid.SampledFrom(faults).Draw(t, "fault")))
					syncFault.Store(int64(rapid.SampledFrom(append(faults[:len(faults):len(faults)], qgatest.None, qgatest.None, qgatest.None)).Draw(t, "fault of the synchronization")))
					_ = call(t)
				},
				"refused": func(t *rapid.T) {
					behave(t)
					_, err := client.Execute(context.Background(), "deny", nil)
					var refusal *qga.Error
					if !errors.As(err, &refusal) || refusal.Desc != "no" || refusal.Command != "deny" {
						t.Fatal(err)
					}
				},
				"behaves again": behave,
				"is not there": func(t *rapid.T) {
					fault.Store(0)
					syncFault.Store(int64(rapid.SampledFrom([]qgatest.Fault{qgatest.Drop, qgatest.Hold, qgatest.Half}).Draw(t, "what becomes of synchronizations")))
					for range rapid.IntRange(5, 40).Draw(t, "calls") {
						_ = call(t)
					}
				},
				"release": func(*rapid.T) { agent.Release(); synctest.Wait() },
				"ended before it began": func(t *rapid.T) {
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					if _, err := client.Execute(ctx, "echo", struct{}{}); !errors.Is(err, qga.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				},
			})
		})
	})
}

// The same reader, fed with anything, neither panics nor takes garbage for an
// answer.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("{\"return\": {}}\n"))
	f.Add([]byte("\xff{\"return\": 5}\n{\"error\": {\"class\": \"GenericError\", \"desc\": \"x\"}}\n"))
	f.Add([]byte("\xff\xff{\"return\":"))
	f.Add([]byte("\n\r\n{}\n[]\nnull\n"))
	f.Fuzz(func(t *testing.T, junk []byte) {
		agent := &qgatest.Agent{Handlers: map[string]qgatest.Handler{"echo": echo}}
		client := connect(t, agent)
		if err := client.Ping(soon(t)); err != nil {
			t.Fatal(err)
		}
		first := true
		agent.Fault = nil
		agent.Handlers["junk"] = func(qgatest.Request) (any, error) {
			if first {
				agent.Send(junk)
			}
			first = false
			return nil, qgatest.ErrSilent
		}
		ctx, cancel := context.WithTimeout(soon(t), 20*time.Millisecond)
		defer cancel()
		raw, err := client.Execute(ctx, "junk", nil)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("accepted %q", raw)
		}
		got, err := client.Execute(soon(t), "echo", []int{1})
		if err != nil || string(got) != "[1]" {
			t.Fatalf("after junk: %s, %v", got, err)
		}
	})
}
