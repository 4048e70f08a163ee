package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// AskMonitor connects to the monitor of a QEMU by the path of its QMP socket, calls ask, and
// disconnects, because the monitor serves one client at a time. The error of ask is returned
// unchanged; those of the connection name the socket.
func AskMonitor(ctx context.Context, socket string, ask func(*qmp.Client) error) error {
	c, err := qmp.Dial(ctx, socket, qmp.Options{Handshake: monitorGreeting})
	switch {
	case errors.Is(err, qmp.ErrNoGreeting):
		return fmt.Errorf("%s: QEMU's monitor does not answer: it serves one client at a time, and another one seems to be connected: %w", socket, err)
	case err != nil:
		return fmt.Errorf("%s: %w", socket, err)
	}
	if err := ask(c); err != nil { // about the machine, not the connection
		return errors.Join(err, c.Close())
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	return nil
}

func (m *Machine) monitor(ctx context.Context, ask func(*qmp.Client) error) error {
	return AskMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), ask)
}
