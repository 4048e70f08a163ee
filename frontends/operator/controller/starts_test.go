package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// In a namespace one start follows the other; other namespaces do not wait, and
// nothing is kept of those in which nothing starts.
func TestTurnsOfStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(nil)
		first, err := s.take(t.Context(), "apps")
		if err != nil {
			t.Fatal(err)
		}
		elsewhere, err := s.take(t.Context(), "lab")
		if err != nil {
			t.Fatal(err)
		}
		elsewhere()

		impatient, cancel := context.WithCancel(t.Context())
		refused := make(chan error)
		go func() { _, err := s.take(impatient, "apps"); refused <- err }()
		second := make(chan func(), 1)
		go func() {
			done, err := s.take(t.Context(), "apps")
			if err != nil {
				t.Error(err)
			}
			second <- done
		}()
		synctest.Wait()
		cancel()
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		select {
		case <-second:
			t.Fatal("two machines of a namespace start at the same time")
		default:
		}
		first()
		(<-second)()
		if len(s.turns) != 0 {
			t.Errorf("kept: %v", s.turns)
		}
	})
}
