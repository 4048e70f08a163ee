package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runner"
)

const serviceLook = 200 * time.Millisecond

type service struct {
	Unit string
	// System reports whether it is a unit of the system's manager.
	System bool
	// Ours reports whether its command runs this machine, of this data directory.
	Ours bool
	// Reached reports whether a running systemd has it.
	Reached bool

	runtime string // of the user's systemd
}

// chooseService returns the service to start a machine, or nil: then outside is why the machine is
// not started by an existing service; empty if there is none. root reports whether the caller may
// start the system's services; fresh, that this start, unlike a service's, may create disks anew.
func chooseService(services []service, root, fresh bool) (use *service, outside string) {
	for i := range services {
		s := &services[i]
		switch {
		case !s.Ours || !s.Reached:
		case s.System && !root:
			outside = "only root may start its service " + s.Unit
		case fresh:
			outside = "its service " + s.Unit + " makes no disk anew; restart it, to have it there"
		default:
			return s, ""
		}
	}
	return nil, outside
}

func (h *Host) services(ctx context.Context, namespace, name string) ([]service, error) {
	var out []service
	for _, path := range h.Enabled(namespace, name) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		command := unitValue(string(text), "ExecStart")
		s := service{Unit: filepath.Base(path), System: h.IsSystemUnit(path)}
		s.Ours = strings.Contains(command+" ", " "+unitWord(h.root)+" ") && strings.HasSuffix(command, " "+unitWord(FullName(namespace, name)))
		systemd := "/run/systemd/system" // as sd_booted(3)
		if !s.System {
			s.runtime = filepath.Dir(h.runtime)
			systemd = filepath.Join(s.runtime, "systemd")
		}
		// Other runtime directories are shared by all users (runtimeBase).
		if s.Ours && exists(systemd) && (s.System || filepath.Base(h.runtime) == "vmop") {
			u, err := s.look(ctx)
			if err == nil && (u.load != "loaded" || u.stale) {
				if err = s.systemctl(ctx, "daemon-reload"); err == nil {
					u, err = s.look(ctx)
				}
			}
			s.Reached = err == nil && u.load == "loaded"
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *service) output(ctx context.Context, args ...string) (string, error) {
	if !s.System {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{"--no-ask-password", "--no-pager"}, args...)...)
	if !s.System {
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.runtime)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(out), err
}

func (s *service) systemctl(ctx context.Context, args ...string) error {
	_, err := s.output(ctx, args...)
	return err
}

type unitState struct {
	load   string // loaded if systemd has it
	stale  bool   // the file has changed since it was loaded
	active string // active, inactive, failed, activating, deactivating
	sub    string // auto-restart: it waits for its restart
	pid    int
	status int // the exit status of the process
}

func (u unitState) waits() bool { return u.active == "activating" && u.sub == "auto-restart" }

func (s *service) look(ctx context.Context) (unitState, error) {
	out, err := s.output(ctx, "show", "-p", "LoadState,NeedDaemonReload,ActiveState,SubState,MainPID,ExecMainStatus", s.Unit)
	if err != nil {
		return unitState{}, err
	}
	return parseUnitState(out)
}

func parseUnitState(text string) (unitState, error) {
	var u unitState
	var err error
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
		number := func() (n int) {
			var e error
			if n, e = strconv.Atoi(value); e != nil {
				err = errors.Join(err, fmt.Errorf("systemctl show: %s is %q, expected a number", key, value))
			}
			return n
		}
		switch key {
		case "LoadState":
			u.load = value
		case "NeedDaemonReload":
			u.stale = value == "yes"
		case "ActiveState":
			u.active = value
		case "SubState":
			u.sub = value
		case "MainPID":
			u.pid = number()
		case "ExecMainStatus":
			u.status = number()
		}
	}
	return u, err
}

func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return pid > 0 && err == nil && ok && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func (j *Job) startBy(ctx context.Context, s *service, progress func(string)) (Started, error) {
	j.service = s.Unit
	if err := j.keep(); err != nil {
		return Started{}, err
	}
	log, logStart, err := openLog(j.Directories)
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		return Started{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("the guest does not run after %v", startDeadline))
	defer cancel()
	started, err := j.awaitService(ctx, s, progress)
	if failed := (*StartError)(nil); errors.As(err, &failed) {
		failed.Log = logSince(j.Directories.LogFile(), logStart)
		return started, err
	}
	if err != nil && ctx.Err() != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortGrace)
		defer cancel()
		return started, errors.Join(fmt.Errorf("%s: the start was given up: %w", j.FullName(), context.Cause(ctx)), s.systemctl(stopping, "stop", s.Unit))
	}
	return started, err
}

func (j *Job) awaitService(ctx context.Context, s *service, progress func(string)) (Started, error) {
	ticks := time.NewTicker(serviceLook)
	defer ticks.Stop()
	asked, told := false, ""
	for {
		u, err := s.look(ctx)
		if err != nil {
			return Started{}, err
		}
		m, err := j.host.Machine(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
		switch {
		case err != nil:
			return Started{}, err
		case m.Runner != 0 && (m.Status == StatusRunning || m.Status == StatusPaused):
			return Started{PID: m.Runner, Service: s.Unit}, nil
		case m.Runner != 0 && m.State.Message != told:
			told = m.State.Message
			progress(m.Name + ": " + told)
		}
		running := u.active == "active" || u.active == "activating" && !u.waits()
		switch {
		case u.active == "deactivating" || running && !lives(u.pid): // of the previous run, or systemd has not noticed its end yet
		case running:
			asked = true
		case !asked:
			asked = true
			// systemd would not start one that has reached its limit of starts.
			if err := s.systemctl(ctx, "reset-failed", s.Unit); err != nil && u.active == "failed" {
				return Started{}, err
			}
			if err := s.systemctl(ctx, "start", s.Unit); err != nil {
				return Started{}, err
			}
			continue
		case u.status == runner.ExitOK || u.status == UnitStopped:
			return Started{Ended: true, Service: s.Unit}, nil
		default:
			state := fmt.Sprintf("exit status %d of its service %s", u.status, s.Unit)
			if u.waits() {
				state += ", which systemd starts again"
			}
			return Started{}, &StartError{Name: j.FullName(), ExitCode: u.status, State: state}
		}
		select {
		case <-ctx.Done():
			return Started{}, context.Cause(ctx)
		case <-ticks.C:
		}
	}
}

// keep is for a process that does not get the job.
func (j *Job) keep() (err error) {
	d := j.Directories
	had, err := os.ReadFile(d.ManifestFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	def, err := d.Definition()
	if err != nil {
		return err
	}
	lock, err := runner.LockFor(d.Data, "started")
	if errors.Is(err, runner.ErrLocked) {
		if busy := d.busy(); busy != nil {
			return fmt.Errorf("%s: %w: %w", j.FullName(), ErrBusy, busy)
		}
		return fmt.Errorf("%s: %w", j.FullName(), runner.ErrRunning)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	def.Given = j.Definition.Given
	err = def.write(d)
	if err == nil && !bytes.Equal(had, j.Manifest) {
		err = atomicfile.Replace(d.ManifestFile(), j.Manifest)
	}
	return err
}

// Stop is [Machine.Stop], and prevents a pending restart by systemd. It returns the machine after
// the stop.
func (h *Host) Stop(ctx context.Context, m Machine, o StopOptions) (Machine, error) {
	if err := m.Stop(ctx, o); err != nil {
		return m, err
	}
	services, err := h.services(ctx, m.Namespace, m.Name)
	if err != nil {
		return m, err
	}
	for _, s := range services {
		if !s.Reached {
			continue
		}
		switch u, err := s.look(ctx); {
		case err != nil:
			return m, err
		case u.waits():
			if err := s.systemctl(ctx, "stop", s.Unit); err != nil {
				return m, fmt.Errorf("its service starts it again: %w", err)
			}
		}
	}
	return h.Machine(m.Namespace, m.Name)
}

// Delete removes a machine as [Host.DeleteStopped] does, after shutting it down. It refuses one that
// systemd starts with the host: disable it first.
func (h *Host) Delete(ctx context.Context, m Machine, o DeleteOptions) (kept []File, err error) {
	if units := h.Enabled(m.Namespace, m.Name); len(units) > 0 {
		return nil, fmt.Errorf("delete %s: %s starts it by its name: disable it first", m.FullName(), units[0])
	}
	if m, err = h.Machine(m.Namespace, m.Name); err != nil { // its present state
		return nil, err
	}
	if m, err = h.Stop(ctx, m, StopOptions{}); err != nil {
		return nil, err
	}
	return h.DeleteStopped(m, o)
}
