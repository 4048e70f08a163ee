package kubernetes

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
)

// counter is an API that counts what it is told.
type counter struct {
	statuses, events int
	cpus             int
}

func (*counter) Machine(context.Context) (Machine, error) { return Machine{UID: "u"}, nil }
func (c *counter) ApplyStatus(_ context.Context, _ Machine, status *vmstatus.Status) error {
	c.statuses++
	c.cpus = status.CPUs
	return nil
}
func (c *counter) CreateEvent(context.Context, string, Event) error { c.events++; return nil }
func (*counter) CloseIdle()                                         {}

// A guest that changes the status without end causes ever fewer writes; what
// others change is told as fast as ever.
func TestGuestCausesFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &counter{}
		r := NewReporter(api, func(runner.Level, string) {})
		s := runner.State{Phase: runner.PhaseBooting}
		for i := range 10 * 60 * 60 { // an hour
			s.Guest.HostName = fmt.Sprint("host", i%2)
			s.Login.User = fmt.Sprint("user", i)
			r.State(s)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if api.statuses < 60 || api.statuses > 80 {
			t.Errorf("%d writes in an hour", api.statuses)
		}
		s.CPUs = 2
		r.State(s)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if api.cpus != 2 {
			t.Errorf("the status has %v CPUs", api.cpus)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		before := api.statuses
		for i := range 5 { // after a quiet time
			s.Guest.HostName = fmt.Sprint("again", i)
			r.State(s)
			time.Sleep(1100 * time.Millisecond)
		}
		synctest.Wait()
		if got := api.statuses - before; got != 5 {
			t.Errorf("%d writes of 5 changes", got)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
