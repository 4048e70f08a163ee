package main

import (
	"bufio"
	"bytes"
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

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
)

// superviseName is the command that a detached run starts itself with.
const superviseName = "supervise"

// The descriptors of the process that supervises a detached machine.
const (
	jobFD    = 3 // what to run, as JSON
	reportFD = 4 // what becomes of it: a line per phase, until the guest runs
)

// readyLine is the report that the guest runs.
const readyLine = "ready"

const (
	// detachDeadline bounds the start of a machine: longer than the engine's own
	// deadlines.
	detachDeadline = 5 * time.Minute
	// abortGrace is what a start that is given up gets to clean up.
	abortGrace = 30 * time.Second
	// maxLog is the size of a log that is put aside at the next start.
	maxLog = 1 << 20
	// shownLog is how many lines of the log are shown after a failure.
	shownLog = 10
)

// detach runs a machine in a process of its own and returns when its guest runs.
func (p *program) detach(ctx context.Context, j *job) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, logStart, err := openLog(j.directories())
	if err != nil {
		return err
	}
	defer log.Close()
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	// A file rather than a pipe: nobody has to write while the other reads.
	file, err := jobFile(data)
	if err != nil {
		return err
	}
	defer file.Close()
	report, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()

	cmd := exec.Command(exe, superviseName)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{file, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's end is not the machine's
	err = cmd.Start()
	if err = errors.Join(err, theirs.Close()); err != nil {
		return fmt.Errorf("start the machine's process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	g := p.begin(j.name() + ": starting")
	ready, err := awaitReady(ctx, report, g)
	g.end()
	if ready {
		fmt.Fprintf(p.stdout, "%s runs (process %d). Console: vmop-cli console %s\n", j.name(), cmd.Process.Pid, j.name())
		return cmd.Process.Release()
	}
	if err != nil { // it has not ended
		abort(cmd, report)
	}
	_ = cmd.Wait() // what it says is in ProcessState
	if err != nil {
		return fmt.Errorf("%s: the start was given up: %w", j.name(), err)
	}
	code := cmd.ProcessState.ExitCode()
	if code == exitOK {
		fmt.Fprintf(p.stdout, "%s ran and has ended.\n", j.name())
		return nil
	}
	p.showLog(j.directories().logFile(), logStart)
	return &exitStatus{code: max(code, exitError), err: fmt.Errorf("%s did not start (%s)", j.name(), cmd.ProcessState)}
}

// awaitReady reads reports. Their end without an error is that of the process.
func awaitReady(ctx context.Context, report *os.File, g *progress) (ready bool, err error) {
	if ctx.Err() == nil {
		if err := report.SetReadDeadline(time.Now().Add(detachDeadline)); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil { // it may have ended before the deadline was set
		return false, ctx.Err()
	}
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		if lines.Text() == readyLine {
			return true, nil
		}
		g.set(lines.Text())
	}
	switch err := lines.Err(); {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, fmt.Errorf("the guest does not run after %v", detachDeadline)
	default:
		return false, err
	}
}

// abort ends a process that was started for a machine.
func abort(cmd *exec.Cmd, report *os.File) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = report.SetReadDeadline(time.Now().Add(abortGrace))
	if _, err := io.Copy(io.Discard, report); err != nil {
		_ = cmd.Process.Kill()
	}
}

// jobFile is a file in memory that holds data, which may contain secrets.
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

// openLog opens a machine's log at its end and says where that is.
func openLog(d directories) (*os.File, int64, error) {
	path := d.logFile()
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, d.oldLogFile()); err != nil {
			return nil, 0, fmt.Errorf("put the old log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("log of the machine: %w", err)
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, end, nil
}

// showLog shows the last lines that a log has got since a position.
func (p *program) showLog(path string, start int64) {
	f, err := os.Open(path)
	if err != nil {
		p.errorf("%v", err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, start, maxLog))
	if err != nil {
		p.errorf("%v", err)
		return
	}
	lines := strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
	for _, line := range lines[max(0, len(lines)-shownLog):] {
		p.note("%s", line)
	}
}

func (p *program) superviseCommand() *cli.Command {
	return &cli.Command{
		Name:   superviseName,
		Usage:  "run a machine for run --detach, which starts this",
		Hidden: true,
		Action: p.supervise,
	}
}

// supervise runs a detached machine. Its standard error is the log.
func (p *program) supervise(c *cli.Context) error {
	// QEMU inherits what is not closed on exec.
	syscall.CloseOnExec(jobFD)
	syscall.CloseOnExec(reportFD)
	file, report := os.NewFile(jobFD, "job"), os.NewFile(reportFD, "report")
	j, err := readJob(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return usagef(c, "this command is started by run --detach only: %v", err)
	}
	e, k, err := j.engine(&runner.LogReporter{Out: p.stderr}, &reporter{out: report})
	if err != nil {
		return err
	}
	defer onSignals(e.Stop)()
	outcome, err := e.Run(c.Context)
	kept := k.ended(e.State(), err)
	if err != nil {
		return &exitStatus{code: outcome.ExitCode(), err: errors.Join(err, kept)}
	}
	return kept
}

// reporter tells the calling process what becomes of the machine, until the
// guest runs.
type reporter struct {
	out    *os.File
	closed bool
}

// State implements runner.Reporter.
func (r *reporter) State(s runner.State) {
	if r.closed {
		return
	}
	// The calling process may be gone, which does not matter to the machine.
	if s.Phase == runner.PhaseBooting {
		fmt.Fprintln(r.out, readyLine)
		_ = r.out.Close()
		r.closed = true
		return
	}
	fmt.Fprintln(r.out, printableCell(s.Name+": "+s.Message))
}

// Message implements runner.Reporter.
func (r *reporter) Message(runner.Message) {}
