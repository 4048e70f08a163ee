package runner

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/live"
)

// A QEMU that hangs tells nobody: it is asked, and its machine says that it does not answer, until it
// does again. (QEMU 10.0 without KVM was met that waits for itself for ever.)
func TestQEMUThatHangsIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig()
		r, q := followFake(t, c)
		hang := func(hangs bool) {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.silent = hangs
		}
		executes := func() live.Condition { return condition(r.State(), live.GuestExecuting) }
		synctest.Wait()
		time.Sleep(time.Hour)
		if got := executes(); got.Status != live.True {
			t.Fatalf("%+v", got)
		}
		hang(true)
		time.Sleep(pingInterval + commandDeadline)
		synctest.Wait()
		if got := executes(); got.Status != live.Unknown || got.Reason != live.ReasonQEMUNotResponding || !r.State().Paused {
			t.Fatalf("%+v", got)
		}
		time.Sleep(time.Hour)
		hang(false)
		time.Sleep(observeRetry + commandDeadline)
		synctest.Wait()
		if got := executes(); got.Status != live.True || r.State().Paused {
			t.Errorf("%+v", got)
		}
		told := 0
		for _, m := range r.log.messages {
			if strings.Contains(m, live.ReasonQEMUNotResponding) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("it is told %d times: %q", told, r.log.messages)
		}
		r.cancel()
		synctest.Wait()
	})
}
