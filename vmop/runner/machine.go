package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/vmop/sdk/vmop/qmp"
)

type machine struct {
	qemu        *child
	helpers     []*child
	servers     []*child    // of shares; the machine goes on without them
	client      *qmp.Client // nil until connected
	agentSocket string
	agentAsked  bool       // to shut the guest down
	login       *login     // nil without the VMOP agent's port
	guest       *guestInfo // nil without the guest agent's port
	events      *qmp.Subscription
	rareEvents  *qmp.Subscription // also part of events
	follower    *follower
}

func (m *machine) onEnd(cancel context.CancelCauseFunc) {
	for _, c := range slices.Concat([]*child{m.qemu}, m.helpers, m.servers) {
		go func() { // ends with the process, which the engine waits for
			<-c.done
			cancel(errors.New(c.describe()))
		}()
	}
}

func (m *machine) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
		return cause // the start is being stopped: QEMU has not ended, and is not waited for
	}
	// The connection breaks a moment before the process has ended.
	wait, cancel := context.WithTimeout(context.Background(), helperGrace)
	defer cancel()
	if m.qemu.wait(wait) == nil {
		return errors.New(m.qemu.describe())
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// endHelpers ends the helpers of a QEMU that has ended. They end by themselves when QEMU closes its
// connection, and write their state then.
func endHelpers(helpers []*child) error {
	var errs []error
	for _, h := range helpers {
		grace, cancel := context.WithTimeout(context.Background(), helperGrace)
		if h.wait(grace) != nil {
			h.signal(sigTERM)
		}
		cancel()
		grace, cancel = context.WithTimeout(context.Background(), quitGrace)
		if h.wait(grace) != nil {
			h.signal(sigKILL)
		}
		cancel()
		grace, cancel = context.WithTimeout(context.Background(), killGrace)
		errs = append(errs, h.wait(grace))
		cancel()
	}
	return errors.Join(errs...)
}
