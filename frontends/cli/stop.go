package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// stopReserve is how much longer than the machine's power-down timeout stop
// waits: the runner has to end QEMU and clean up.
const stopReserve = time.Minute

func (p *program) stopCommand() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "shut a machine down, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Asks the guest to shut down and waits until it has, at most for the manifest's\n" +
			"spec.vm.powerdownTimeout; after that, its runner stops it without its consent. A\n" +
			"machine that does not run is no error. In a cluster, spec.vm.state becomes Stopped,\n" +
			"and the operator does the same.\n\n" +
			"Examples:\n" +
			"  vmop-cli stop hello\n" +
			"  vmop-cli stop hello --now\n" +
			"  vmop-cli stop --context lab -n shop web",
		Flags: eitherFlags(machineFlags(append(waitFlags(),
			&cli.BoolFlag{Name: "now", Usage: "do not wait for the guest: it finds its disks as after a power cut; on this host only", DisableDefaultText: true},
		)...)...),
		Action: p.stop,
	}
}

func (p *program) stop(c *cli.Context) error {
	if inCluster(c) {
		if c.Bool("now") {
			return usagef(c, "--now is for machines of this host; in a cluster, lower spec.vm.powerdownTimeout")
		}
		return p.setState(c, spec.StateStopped, "stop", "has stopped")
	}
	if c.Bool("no-wait") || c.IsSet("timeout") {
		return usagef(c, "--no-wait and --timeout are for a cluster (--cluster, --context or --kubeconfig)")
	}
	name, err := oneName(c)
	if err != nil {
		return err
	}
	m, err := p.find(c, name)
	if err != nil {
		return err
	}
	full := fullName(m.Namespace, m.Name)
	if !m.running() {
		fmt.Fprintf(p.stdout, "%s is not running.\n", full)
		return nil
	}
	ctx, cancel := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	timeout := time.Duration(m.State.PowerdownTimeout)*time.Second + stopReserve
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it still runs after %v; see vmop-cli stop --now", timeout))
	defer cancelTimeout()
	g := p.begin(full + ": shutting down")
	if m.Runner != 0 {
		err = stopRunner(ctx, &m, c.Bool("now"))
	} else {
		err = stopOrphan(ctx, &m, c.Bool("now"))
	}
	g.end()
	if err != nil {
		return fmt.Errorf("stop %s: %w", full, err)
	}
	fmt.Fprintf(p.stdout, "%s has stopped.\n", full)
	if c.Bool("now") {
		return nil
	}
	if state, err := runner.ReadState(m.stateFile()); err == nil && state.Outcome != nil && !state.Outcome.Orderly {
		return &exitStatus{code: runner.ExitForced, err: fmt.Errorf("%s: %s; its disks are as after a power cut", full, state.Outcome.Message)}
	}
	return nil
}

// stopRunner asks the runner, twice if it shall not wait for the guest.
func stopRunner(ctx context.Context, m *machine, now bool) error {
	proc, err := openHolder(m.machine, m.Runner)
	if err != nil || proc == nil {
		return err
	}
	defer proc.close()
	requests := 1
	if now {
		requests = 2
	}
	for i := range requests {
		if i > 0 {
			if ended, err := proc.wait(ctx, secondRequest); ended || err != nil {
				return err
			}
		}
		if err := proc.signal(unix.SIGTERM); err != nil {
			return err
		}
	}
	_, err = proc.wait(ctx, 0)
	return err
}

// secondRequest is the time between two requests to stop: closer ones would be
// the same.
const secondRequest = 2 * sameRequest

// stopOrphan stops a guest whose runner is gone, by QEMU's monitor or signals.
func stopOrphan(ctx context.Context, m *machine, now bool) error {
	proc, err := openHolder(m.machine, m.QEMU)
	if err != nil || proc == nil {
		return err
	}
	defer proc.close()
	if now {
		if err := proc.signal(unix.SIGTERM); err != nil { // on which QEMU writes its caches back
			return err
		}
	} else if err := pressPowerButton(ctx, m.socket(runnerconfig.ToolSocket)); err != nil {
		return fmt.Errorf("ask the guest: %w; see vmop-cli stop --now", err)
	}
	_, err = proc.wait(ctx, 0)
	return err
}

func pressPowerButton(ctx context.Context, socket string) error {
	c, err := qmp.Dial(ctx, socket, qmp.Options{Handshake: monitorGreeting})
	if err != nil {
		return err
	}
	_, err = qmp.Do(ctx, c, qmp.SystemPowerdown{})
	return errors.Join(err, c.Close())
}

// process is a process that is not a child. It is held by a descriptor, so that
// no other can take its place.
type process struct{ fd int }

// openHolder opens the process that holds a machine's lock; nil if it has ended.
func openHolder(dataDir string, pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	proc := &process{fd: fd}
	// Only now is it certain that the id is not another process's.
	holders, err := runner.Holders(dataDir)
	for _, h := range holders {
		if h.PID == pid {
			return proc, nil
		}
	}
	proc.close()
	return nil, err
}

func (p *process) close() { _ = unix.Close(p.fd) }

func (p *process) signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal: %w", err)
	}
	return nil
}

// wait waits for the process's end: as long as ctx allows, or a limit above 0.
func (p *process) wait(ctx context.Context, limit time.Duration) (ended bool, err error) {
	// The pipe wakes the poll when ctx ends.
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer func() {
		if stop() {
			_ = w.Close()
		}
	}()
	timeout := -1
	if limit > 0 {
		timeout = int(limit.Milliseconds())
	}
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(r.Fd())}}
		n, err := unix.Poll(fds, timeout)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("wait for the end of the process: %w", err)
		case fds[0].Revents != 0:
			return true, nil
		case n == 0:
			return false, nil
		default:
			return false, context.Cause(ctx)
		}
	}
}
