package qga_test

import (
	"context"
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

// connect returns a client of the agent. The test's end ends both.
func connect(t testing.TB, agent *qgatest.Agent) *qga.Client {
	t.Helper()
	near, far := net.Pipe()
	client := qga.New(near)
	served := make(chan struct{})
	go func() {
		defer close(served)
		agent.Serve(far)
	}()
	t.Cleanup(func() {
		_ = client.Close()
		<-served
	})
	return client
}

// echo answers with the arguments.
func echo(r qgatest.Request) (any, error) { return r.Arguments, nil }

// returns is a handler that always gives this JSON.
func returns(text string) qgatest.Handler {
	return func(qgatest.Request) (any, error) { return json.RawMessage(text), nil }
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
