package goqemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	goqemu "github.com/digitalocean/go-qemu/qmp"

	"github.com/vmop/sdk/vmop/qmp"
)

// ErrNotConnected is returned by Run and Events before Connect and after Disconnect.
var ErrNotConnected = errors.New("goqemu: not connected")

// Monitor is a go-qemu monitor on top of a qmp.Client. It is safe for concurrent use.
type Monitor struct {
	ctx   context.Context // bounds everything, as the interface has no contexts
	dial  func(context.Context) (*qmp.Client, error)
	owned bool // the client is closed by Disconnect

	connecting sync.Mutex // held by Connect

	mu      sync.Mutex
	client  *qmp.Client        // nil unless connected
	life    context.Context    // from Connect to Disconnect
	end     context.CancelFunc // ends life, nil unless connecting or connected
	streams sync.WaitGroup     // goroutines of Events
}

var _ goqemu.Monitor = (*Monitor)(nil)

// New returns a monitor that uses client, and leaves it open on Disconnect. ctx bounds all of its
// operations.
func New(ctx context.Context, client *qmp.Client) *Monitor {
	return &Monitor{ctx: ctx, dial: func(context.Context) (*qmp.Client, error) { return client, client.Err() }}
}

// Dial returns a monitor that connects to the Unix socket at path when Connect is called. ctx
// bounds all of its operations.
func Dial(ctx context.Context, path string, o qmp.Options) *Monitor {
	return &Monitor{ctx: ctx, owned: true, dial: func(ctx context.Context) (*qmp.Client, error) {
		return qmp.Dial(ctx, path, o)
	}}
}

// Connect connects, unless a working connection exists. It may be called again after Disconnect and
// after the connection was lost. Disconnect interrupts it.
func (m *Monitor) Connect() error {
	m.connecting.Lock()
	defer m.connecting.Unlock()
	m.mu.Lock()
	if m.client != nil && m.client.Err() == nil {
		m.mu.Unlock()
		return nil
	}
	if m.end != nil {
		m.end()
	}
	life, end := context.WithCancel(m.ctx)
	m.client, m.life, m.end = nil, life, end
	m.mu.Unlock()

	client, err := m.dial(life)
	if err != nil {
		end()
		return fmt.Errorf("goqemu: connect: %w", err)
	}
	m.mu.Lock()
	interrupted := life.Err() != nil
	if !interrupted {
		m.client = client
	}
	m.mu.Unlock()
	if interrupted {
		if m.owned {
			_ = client.Close()
		}
		return fmt.Errorf("goqemu: connect: %w", context.Cause(life))
	}
	return nil
}

// Disconnect ends the streams of Events and closes a connection that Connect has made. It may be
// called more than once.
func (m *Monitor) Disconnect() error {
	m.mu.Lock()
	client := m.client
	m.client = nil
	if m.end != nil {
		m.end()
	}
	m.mu.Unlock()
	var err error
	if client != nil && m.owned {
		err = client.Close()
	}
	m.streams.Wait()
	return err
}

// Client returns the underlying client, nil unless connected.
func (m *Monitor) Client() *qmp.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client
}

// Run runs a command, given as a QMP message, and returns the reply as one. The id of the command,
// which may be any JSON value, is copied to the reply. Refusals are a *qmp.Error.
func (m *Monitor) Run(command []byte) ([]byte, error) {
	client := m.Client()
	if client == nil {
		return nil, ErrNotConnected
	}
	var request struct {
		Execute   string          `json:"execute"`
		ExecOOB   string          `json:"exec-oob"`
		Arguments json.RawMessage `json:"arguments"`
		ID        json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(command, &request); err != nil {
		return nil, fmt.Errorf("goqemu: command: %w", err)
	}
	name := request.Execute
	var options []qmp.CallOption
	if request.ExecOOB != "" {
		name = request.ExecOOB
		options = append(options, qmp.OutOfBand())
	}
	var args any
	if request.Arguments != nil {
		args = request.Arguments
	}
	result, err := client.Execute(m.ctx, name, args, options...)
	if err != nil {
		return nil, err
	}
	return reply(result, request.ID), nil
}

func reply(result, id json.RawMessage) []byte {
	b := make([]byte, 0, len(result)+len(id)+len(`{"return":,"id":}`))
	b = append(b, `{"return":`...)
	b = append(b, result...)
	if id != nil {
		b = append(b, `,"id":`...)
		b = append(b, id...)
	}
	return append(b, '}')
}
