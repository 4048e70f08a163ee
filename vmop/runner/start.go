package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// The machine that startAll returns with an error must be aborted.
func (e *Engine) startAll(ctx context.Context, cmd qemucmd.Command, con *console) (*machine, error) {
	m := &machine{}
	for _, h := range cmd.Helpers {
		if err := e.startHelper(m, h); err != nil {
			return m, err
		}
	}
	if err := e.startQEMU(m, cmd); err != nil {
		return m, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.onEnd(cancel)
	client, err := e.connect(ctx, cmd)
	if err != nil {
		return m, m.explain(ctx, err)
	}
	m.client = client
	m.events, m.rareEvents = client.Subscribe(64), client.Subscribe(64, rareEvents...)
	e.update(func(s *State) { s.QEMUVersion = client.Greeting().Version.String() })
	for _, s := range cmd.Sockets {
		switch s.Purpose {
		case qemucmd.SocketSerial:
			if err := con.connect(s.Path); err != nil {
				return m, m.explain(ctx, err)
			}
			e.update(func(st *State) {
				st.Sockets[string(qemucmd.SocketConsole)] = filepath.Join(e.o.Directories.Runtime, qemucmd.SocketConsole.FileName())
			})
		case qemucmd.SocketGuestAgent:
			m.agentSocket = s.Path
			m.guest = newGuestInfo(e, client, s.Path)
			e.publish(s)
		case qemucmd.SocketVMOPAgent:
			m.login = e.newLogin(ctx, s.Path)
			e.mu.Lock()
			e.login = m.login
			e.mu.Unlock()
			e.publish(s)
		default:
			if s.Purpose.Shared() {
				e.publish(s)
			}
		}
	}
	e.growMade(ctx, client)
	if m.follower, err = e.newFollower(ctx, client); err != nil {
		return m, m.explain(ctx, err)
	}
	if err := m.follower.begin(ctx); err != nil {
		return m, m.explain(ctx, err)
	}
	now := time.Now()
	e.update(func(s *State) {
		s.Phase, s.Message, s.Started = PhaseBooting, "the guest executes", &now
	})
	return m, nil
}

func (e *Engine) publish(s qemucmd.NamedSocket) {
	e.update(func(st *State) { st.Sockets[string(s.Purpose)] = s.Path })
}

// startHelper starts a process that listens on a socket which exists before it does, so that
// nothing has to wait for it.
func (e *Engine) startHelper(m *machine, h qemucmd.Helper) error {
	file, err := listenFile(h.Socket)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	// It inherits the data directory's lock: no other process writes its state while it lives.
	c, err := startChild(h.Name, h.Executable, h.Args, []*os.File{file, e.locks[0]}, e.childLine)
	err = errors.Join(err, file.Close())
	if c != nil {
		if c.serves = h.Serves; h.Serves != "" {
			c.name += " of the shared folder " + h.Serves
		}
		if h.Dispensable {
			m.servers = append(m.servers, c)
			return err
		}
		m.helpers = append(m.helpers, c)
		err = errors.Join(err, writePID(e.o.Directories.Runtime, h.Name, c.process.Pid))
	}
	return err
}

func (e *Engine) startQEMU(m *machine, cmd qemucmd.Command) error {
	monitor, err := listenFile(filepath.Join(e.o.Directories.Runtime, qemucmd.SocketMonitor.FileName()))
	if err != nil {
		return fmt.Errorf("monitor: %w", err)
	}
	// QEMU inherits the locks and holds them as long as it lives.
	e.memory = readMemoryEvents(ownCgroup())
	files := slices.Concat([]*os.File{monitor}, e.inherited, e.locks)
	c, err := startChild("qemu", cmd.Executable, cmd.Args(), files, e.childLine)
	err = errors.Join(err, monitor.Close(), e.closeInherited())
	if c == nil {
		return err
	}
	c.readable, c.means = e.namedImages, e.means
	m.qemu = c
	e.update(func(s *State) { s.QEMUPID = c.process.Pid })
	return errors.Join(err, writePID(e.o.Directories.Runtime, "qemu", c.process.Pid))
}

func (e *Engine) connect(ctx context.Context, cmd qemucmd.Command) (*qmp.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	for _, s := range cmd.Sockets {
		if s.Purpose == qemucmd.SocketMonitor {
			c, err := qmp.Dial(ctx, s.Path, qmp.Options{})
			if err != nil {
				return nil, fmt.Errorf("connect to QEMU's monitor: %w", err)
			}
			return c, nil
		}
	}
	return nil, errors.New("the command has no monitor")
}

func (e *Engine) abort(m *machine) error {
	if m == nil {
		return nil
	}
	var errs []error
	if m.qemu != nil {
		m.qemu.signal(sigKILL)
		ctx, cancel := context.WithTimeout(context.Background(), killGrace)
		defer cancel()
		errs = append(errs, m.qemu.wait(ctx))
	}
	if m.client != nil {
		errs = append(errs, m.client.Close())
	}
	m.login.close()
	for _, h := range slices.Concat(m.helpers, m.servers) {
		h.signal(sigTERM) // it does not end by itself if QEMU never connected
	}
	return errors.Join(append(errs, endHelpers(slices.Concat(m.helpers, m.servers)))...)
}

// rareEvents must not be lost: no query returns their content. They have a buffer of their own,
// because a guest can cause any number of the others.
var rareEvents = []string{qmp.ShutdownEvent{}.QMPEvent(), qmp.ResetEvent{}.QMPEvent(), qmp.GuestPanickedEvent{}.QMPEvent(), qmp.GuestCrashLoadedEvent{}.QMPEvent()}
