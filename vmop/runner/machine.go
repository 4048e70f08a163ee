package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/vmop/sdk/vmop/qmp"
)

// machine is a started QEMU with what belongs to it.
type machine struct {
	qemu        *child
	helpers     []*child
	servers     []*child    // of shares, without which the machine goes on
	client      *qmp.Client // nil until connected
	agentSocket string
	agentAsked  bool       // to shut the guest down
	login       *login     // nil without the VMOP agent's port
	guest       *guestInfo // nil without the guest agent's
	events      *qmp.Subscription
	rareEvents  *qmp.Subscription // beside events, which has them too
	follower    *follower
}

// onEnd calls cancel with an explanation once one of the machine's processes ends.
func (m *machine) onEnd(cancel context.CancelCauseFunc) {
	for _, c := range slices.Concat([]*child{m.qemu}, m.helpers, m.servers) {
		go func() { // ends with the process, which the engine waits for
			<-c.done
			cancel(errors.New(c.describe()))
		}()
	}
}

// explain replaces an error that only follows from the end of a process.
func (m *machine) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
		return cause // somebody stops the start: QEMU has not ended, and is not waited for
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

// endHelpers ends the helpers of a QEMU that has ended. They end by themselves
// when it closes its connection, so that they write their state.
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
