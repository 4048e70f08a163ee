package runner

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/vmopagent"
)

// loginRetry is the pause before reconnecting to the VMOP agent's port; it doubles up to
// loginRetryMax. QEMU closes the connection only when it ends, or on a command.
const (
	loginRetry    = time.Second
	loginRetryMax = time.Minute
)

// newLogin connects to the agent's port before the guest executes, so that no greeting is lost.
func (e *Engine) newLogin(ctx context.Context, socket string) *login {
	l := &login{e: e, socket: socket, users: make(chan string, 1), ports: make(chan bool, 1)}
	if err := l.connect(ctx); err != nil && ctx.Err() == nil {
		e.message(LevelWarning, "%v", err)
	}
	return l
}

func (l *login) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agentDeadline)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", l.socket)
	if err != nil {
		return errors.Join(errors.New("connect to the VMOP agent's port"), err)
	}
	l.conn = conn
	return nil
}

func (l *login) close() {
	if l != nil && l.conn != nil {
		_ = l.conn.Close() // nothing was written
	}
}

// want sets the user to be logged in. The caller holds e.mu, so that the calls are in the order of
// the changes.
func (l *login) want(user string) { replace(l.users, user) }

// port reports to the login whether the guest has the agent's port open. It must be called by the
// goroutine that follows the events.
func (l *login) port(open bool) { replace(l.ports, open) }

// replace replaces the value in a channel of capacity 1, of which there is one sender at a time.
func replace[T any](c chan T, v T) {
	select {
	case <-c:
	default:
	}
	c <- v
}

func (l *login) follow(ctx context.Context, c *qmp.Client) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel()
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-c.Done():
			cancel()
		}
	}()
	l.e.mu.Lock()
	user := wantedUser(&l.e.desired.config)
	l.e.mu.Unlock()
	m := vmopagent.NewMachine(vmopagent.Config{}, user)
	for pause := loginRetry; ctx.Err() == nil; pause = min(2*pause, loginRetryMax) {
		if l.conn == nil {
			if err := l.connect(ctx); err != nil && ctx.Err() == nil {
				l.e.message(LevelWarning, "%v", err)
			}
		}
		if l.conn != nil {
			conn := l.conn
			l.conn = nil
			_ = vmopagent.Run(ctx, conn, m, vmopagent.Inputs{Users: l.users, Ports: l.ports}, l.report)
		}
		sleep(ctx, pause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

func (l *login) report(s vmopagent.State) {
	now := Login{
		AgentConnected: s.Connected, Wanted: s.Wanted, User: s.LoggedInUser,
		Reason: string(s.Reason), Message: printable(s.Message),
	}
	l.e.mu.Lock()
	before := l.e.state.Login
	l.e.mu.Unlock()
	if now == before {
		return
	}
	l.e.update(func(s *State) { s.Login = now })
	switch {
	case now.AgentConnected != before.AgentConnected && now.AgentConnected:
		l.e.message(LevelInfo, "the VMOP agent is connected")
	case now.AgentConnected != before.AgentConnected:
		l.e.message(LevelInfo, "the VMOP agent is gone")
	}
	switch {
	case s.Failure != vmopagent.NoFailure && now.Message != before.Message:
		l.e.message(LevelWarning, "VMOP agent: %s", now.Message)
	case now.User != before.User && now.User != "":
		l.e.message(LevelInfo, "the VMOP agent has logged %s in", now.User)
	}
}

func wantedUser(c *runnerconfig.Config) string {
	if d := c.Runner.VM.Display; d != nil {
		return d.LoggedInUser
	}
	return ""
}
