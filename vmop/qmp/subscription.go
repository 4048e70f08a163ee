package qmp

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Subscription receives the events of some names. It buffers a fixed number of events; when these
// are not fetched, it drops the oldest and counts them, and never blocks the reader. After an
// event, query the state rather than rely on having seen each event.
type Subscription struct {
	client *Client
	names  []string

	mu      sync.Mutex
	ring    []Event
	first   int
	count   int
	dropped uint64 // in total
	err     error
	closed  chan struct{} // closed together with setting err
	ready   chan struct{} // holds a token when there may be events
}

// Subscribe starts to collect the events of the given names, or all events. It holds up to buf
// events, at least one. Subscribe before sending the command that causes the events.
//
// A subscription ends with the connection or by its Close. One created after the connection has
// ended has ended too.
func (c *Client) Subscribe(buf int, names ...string) *Subscription {
	s := &Subscription{
		client: c,
		names:  slices.Clone(names),
		ring:   make([]Event, max(buf, 1)),
		closed: make(chan struct{}),
		ready:  make(chan struct{}, 1),
	}
	if !c.made() {
		s.end(ErrNotConnected)
		return s
	}
	c.mu.Lock()
	err := c.err
	if err == nil {
		c.subs = append(c.subs, s)
	}
	c.mu.Unlock()
	if err != nil {
		s.end(err)
	}
	return s
}

// Next returns the next event, waiting for it until ctx ends. After the subscription or the
// connection has ended, it returns the events still held and then the reason, as Err does. It may
// be called from several goroutines; each event reaches one.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := s.take(); ok || err != nil {
			return e, err
		}
		select {
		case <-s.ready:
		case <-s.closed:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("qmp: wait for event: %w", contextError(ctx))
		}
	}
}

// All returns the events as they come, until ctx, the subscription or the connection ends; see
// ctx.Err and Err.
func (s *Subscription) All(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Dropped returns how many events this subscription has dropped so far.
func (s *Subscription) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Err returns nil while events may come, and then why no more will: ErrSubscriptionClosed or the
// error of Client.Err.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	if c := s.client; c.made() {
		c.mu.Lock()
		c.subs = slices.DeleteFunc(c.subs, func(o *Subscription) bool { return o == s })
		c.mu.Unlock()
	}
	s.end(ErrSubscriptionClosed)
}

func (s *Subscription) take() (e Event, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 {
		return Event{}, false, s.err
	}
	e, s.ring[s.first] = s.ring[s.first], Event{}
	s.first = (s.first + 1) % len(s.ring)
	s.count--
	if s.count > 0 {
		s.wake() // for another consumer
	}
	return e, true, nil
}

func (s *Subscription) put(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.count == len(s.ring) {
		lost := s.ring[s.first]
		s.first = (s.first + 1) % len(s.ring)
		s.count--
		s.dropped++
		// The count of dropped events moves to the next event.
		if s.count > 0 {
			s.ring[s.first].Missed += lost.Missed + 1
		} else {
			e.Missed += lost.Missed + 1
		}
	}
	s.ring[(s.first+s.count)%len(s.ring)] = e
	s.count++
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.closed)
	}
}

// publish passes an event to all matching subscriptions, each with its own copy of the data.
func (c *Client) publish(m *message) error {
	e, err := m.eventHead()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.subs {
		if len(s.names) == 0 || slices.Contains(s.names, e.Name) {
			e.Data = bytes.Clone(m.data)
			s.put(e)
		}
	}
	return nil
}
