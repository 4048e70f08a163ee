package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
)

// The descriptors of the process that supervises a machine in the background.
const (
	jobFD    = 3 // the job, as JSON
	reportFD = 4 // a line per phase, until the guest runs
)

const readyLine = "ready"

// Start runs a machine in a process of its own and returns when its guest runs. One that systemd
// starts with the host ([Host.Enable]) is started by its service, so that the service's restarts
// and limits apply, unless systemd is not running here or refuses the caller.
func (j *Job) Start(ctx context.Context, o StartOptions) (Started, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	var services []service
	if j.host != nil { // Prepare has returned the job
		var err error
		if services, err = j.host.services(ctx, j.Config.Runner.Namespace, j.Config.Runner.VM.Name); err != nil {
			return Started{}, err
		}
	}
	use, outside := chooseService(services, os.Geteuid() == 0, len(j.FreshDisks) > 0)
	if use != nil {
		return j.startBy(ctx, use, o.Progress)
	}
	started, err := j.start(ctx, o)
	started.Outside = outside
	return started, err
}

func (j *Job) start(ctx context.Context, o StartOptions) (Started, error) {
	begun := time.Now()
	j.begins()
	log, logStart, err := openLog(j.Directories)
	if err != nil {
		return Started{}, err
	}
	defer log.Close()
	data, err := json.Marshal(j)
	if err != nil {
		return Started{}, err
	}
	// A file rather than a pipe: writing it cannot block.
	file, err := jobFile(data)
	if err != nil {
		return Started{}, err
	}
	defer file.Close()
	report, theirs, err := os.Pipe()
	if err != nil {
		return Started{}, err
	}
	defer report.Close()

	if len(o.Supervisor) == 0 {
		self, err := os.Executable()
		if err != nil {
			return Started{}, errors.Join(err, theirs.Close())
		}
		o.Supervisor = []string{self, supervisorWord}
	}
	cmd := exec.Command(o.Supervisor[0], o.Supervisor[1:]...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{file, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the machine outlives the terminal
	err = cmd.Start()
	if err = errors.Join(err, theirs.Close()); err != nil {
		return Started{}, fmt.Errorf("start the machine's process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	ready, err := awaitReady(ctx, report, o.Progress)
	if ready {
		pid := cmd.Process.Pid // Release forgets it
		return Started{PID: pid}, cmd.Process.Release()
	}
	if err != nil { // it has not ended
		abort(cmd, report)
	}
	_ = cmd.Wait() // ProcessState has the result
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return Started{}, fmt.Errorf("%s: the start was interrupted: %w", j.FullName(), err)
		}
		return Started{}, fmt.Errorf("%s: the start was given up: %w", j.FullName(), err)
	}
	if code := cmd.ProcessState.ExitCode(); code != runner.ExitOK {
		failed := &StartError{
			Name: j.FullName(), ExitCode: max(code, runner.ExitStart), State: cmd.ProcessState.String(),
			Log: logSince(j.Directories.LogFile(), logStart),
		}
		if s, err := runner.ReadState(j.Directories.StateFile()); err == nil && s.Outcome != nil && !s.Since.Before(begun) {
			failed.Reason = strings.TrimPrefix(s.Message, "start "+j.Config.Runner.VM.Name+": ")
		}
		return Started{}, failed
	}
	return Started{Ended: true}, nil
}

// awaitReady returns the process's error if the reports end without one.
func awaitReady(ctx context.Context, report *os.File, progress func(string)) (ready bool, err error) {
	if ctx.Err() == nil {
		if err := report.SetReadDeadline(time.Now().Add(startDeadline)); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil { // it may have ended before the deadline was set
		return false, context.Cause(ctx)
	}
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		if lines.Text() == readyLine {
			return true, nil
		}
		progress(lines.Text())
	}
	switch err := lines.Err(); {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, fmt.Errorf("the guest does not run after %v", startDeadline)
	default:
		return false, err
	}
}

func abort(cmd *exec.Cmd, report *os.File) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = report.SetReadDeadline(time.Now().Add(abortGrace))
	if _, err := io.Copy(io.Discard, report); err != nil {
		_ = cmd.Process.Kill()
	}
}

// jobFile returns a file in memory, since data may contain secrets.
func jobFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("vmop-job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "vmop-job")
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Supervise runs the machine of a job in this process until it ends, and stops it as [Supervise]
// does. Messages go to the machine's log, and to a writer.
func (j *Job) Supervise(ctx context.Context, out io.Writer) (outcome runner.Outcome, err error) {
	log, _, err := openLog(j.Directories)
	if err != nil {
		return runner.Outcome{Cause: runner.CauseStartFailure}, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	e, err := j.Engine(&runner.LogReporter{Out: io.MultiWriter(log, out)})
	if err != nil {
		return runner.Outcome{Cause: runner.CauseStartFailure}, err
	}
	defer runner.OnStopSignals(runner.Debounced(e.Stop))()
	defer e.TakeQuitSignal()()
	if j.Interrupted != nil && j.Interrupted() {
		e.Stop()
	}
	return e.Run(ctx)
}

// ErrNotSupervisor is the error when the process was not started by [Job.Start].
var ErrNotSupervisor = errors.New("this process was not started to supervise a machine")

// SuperviseOptions are the options of [Supervise].
type SuperviseOptions struct {
	// Log receives the messages; it is the machine's log.
	Log io.Writer
}

// Supervise runs the machine of the calling [Job.Start] in this process, and stops it when the
// process gets SIGTERM, SIGINT or SIGHUP, as [Machine.Stop] sends: the first asks the guest to shut
// down, see [runner.Engine.Stop].
func Supervise(ctx context.Context, o SuperviseOptions) (runner.Outcome, error) {
	// Otherwise QEMU would inherit them.
	syscall.CloseOnExec(jobFD)
	syscall.CloseOnExec(reportFD)
	file, report := os.NewFile(jobFD, "job"), os.NewFile(reportFD, "report")
	j, err := readJob(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return runner.Outcome{}, fmt.Errorf("%w: %w", ErrNotSupervisor, err)
	}
	e, err := j.Engine(&runner.LogReporter{Out: o.Log}, &startReporter{out: report})
	if err != nil {
		return runner.Outcome{Cause: runner.CauseStartFailure}, err
	}
	defer runner.OnStopSignals(runner.Debounced(e.Stop))()
	defer e.TakeQuitSignal()()
	return e.Run(ctx)
}

type startReporter struct {
	out    *os.File
	closed bool
}

// State implements runner.Reporter.
func (r *startReporter) State(s runner.State) {
	if r.closed || s.Phase == runner.PhaseStopped { // the caller tells the end, and why
		return
	}
	// The calling process may have ended, which does not matter to the machine.
	if s.Phase == runner.PhaseBooting {
		fmt.Fprintln(r.out, readyLine)
		_ = r.out.Close()
		r.closed = true
		return
	}
	fmt.Fprintln(r.out, strings.ReplaceAll(s.Name+": "+s.Message, "\n", " "))
}

// Message implements runner.Reporter.
func (r *startReporter) Message(runner.Message) {}

const supervisorWord = "vmop-supervise-machine"
