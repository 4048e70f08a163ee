package goqemu

import (
	"context"
	"encoding/json"

	goqemu "github.com/digitalocean/go-qemu/qmp"

	"github.com/vmop/sdk/vmop/qmp"
)

const eventBuffer = 256

// Events returns a new stream of all events. It is closed when ctx ends, by Disconnect, and when
// the connection is lost. Events that are not received in time are dropped, the oldest first;
// commands and other streams are not delayed.
func (m *Monitor) Events(ctx context.Context) (<-chan goqemu.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return nil, ErrNotConnected
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.life, cancel)
	events := m.client.Subscribe(eventBuffer)
	out := make(chan goqemu.Event)
	m.streams.Add(1)
	go func() {
		defer m.streams.Done()
		defer close(out)
		defer events.Close()
		defer cancel()
		defer stop()
		for e := range events.All(ctx) {
			select {
			case out <- convert(e):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func convert(e qmp.Event) goqemu.Event {
	converted := goqemu.Event{Event: e.Name}
	// The client has checked that the message is JSON. Data other than objects does not occur in
	// QMP.
	_ = json.Unmarshal(e.Data, &converted.Data)
	if !e.Timestamp.IsZero() {
		converted.Timestamp.Seconds = e.Timestamp.Unix()
		converted.Timestamp.Microseconds = int64(e.Timestamp.Nanosecond() / 1000)
	}
	return converted
}
