package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/serial"
)

func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a machine on this host, without a cluster",
		ArgsUsage: "FILE...",
		Description: "With --image, makes a new machine of a cloud image and runs it: the image is checked,\n" +
			"copied and enlarged, and cloud-init makes a user with your SSH key. From then on it is\n" +
			"a machine like others, with a manifest: see start, edit and ssh.\n\n" +
			"Runs the virtual machine of a manifest, whatever its spec.vm.state says, until its\n" +
			"guest powers off. Disks of volumeClaimTemplates are sparse images of the requested\n" +
			"size in the data directory, machines/NAMESPACE/NAME/DISK.img: they are made once and\n" +
			"kept for ever. A disk of an existing claim needs --disk. Of a machine whose first run\n" +
			"cannot be started nothing is kept.\n\n" +
			"On a terminal, the machine's serial console is shown:\n\n" +
			"  Ctrl-C  shuts the guest down properly; again: QEMU is told to quit, again: it is\n" +
			"          killed. (In the view of vmop-cli console, Ctrl-C is typed for the guest.)\n" +
			"  Ctrl-]  ends the view; the machine goes on\n\n" +
			"Elsewhere, the console is copied to the standard output, and the standard input is not\n" +
			"read, which vmop-cli console does. TERM and INT are as Ctrl-C.\n\n" +
			"Examples:\n" +
			"  vmop-cli run vm.yaml\n" +
			"  vmop-cli run vm.yaml --detach\n" +
			"  vmop-cli run --image debian-13-genericcloud-amd64.qcow2 --name shop --cpus 2 --memory 2Gi --detach\n" +
			"  vmop-cli run vm.yaml --disk data=data.qcow2 --image-repository ~/images",
		Flags: append(append(selectFlags(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the guest runs; see list, console and stop", DisableDefaultText: true},
			verboseFlag(),
		), append(imageFlags(), localFlags()...)...),
		Action: p.run,
	}
}

func (p *program) run(c *cli.Context) error {
	o, err := p.manifestOrImage(c)
	defer o.release()
	if err != nil || o.printed {
		return err
	}
	if full := o.machine.FullName(); c.IsSet("image") {
		p.note("%s is created. When the guest has booted: %s", full, p.hint(c, "ssh", full))
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	if m, err := h.Machine(o.Namespace, o.Name); err == nil && m.Runner != 0 {
		return fmt.Errorf("%s is already running (process %d)", m.FullName(), m.Runner)
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	j, err := p.prepare(ctx, c, &o.Object)
	if err != nil {
		return err
	}
	o.release()
	if c.Bool("detach") {
		return p.detachOrDiscard(ctx, c, j)
	}
	return p.foreground(c, j, interruptedBefore(ctx, stop))
}

// interruptedBefore returns a function to call when signals ask the guest to shut down: it reports
// whether a signal has already ended ctx, and calls stop, which ends ctx in any case.
func interruptedBefore(ctx context.Context, stop func()) func() bool {
	return func() bool {
		defer stop()
		return ctx.Err() != nil
	}
}

// detachOrDiscard runs a machine in a process of its own, and removes it if its first start fails.
func (p *program) detachOrDiscard(ctx context.Context, c *cli.Context, j *host.Job) error {
	err := p.detach(ctx, c, j)
	if failed := (*host.StartError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode == runner.ExitStart) {
		p.discard(j)
	}
	return err
}

func (p *program) discard(j *host.Job) {
	switch discarded, err := j.Discard(); {
	case err != nil && !errors.Is(err, host.ErrBusy): // by the process that runs it
		p.errorf("%v", err)
	case discarded:
		p.note("Nothing is kept of %s, which has never run.", j.FullName())
	}
}

// foreground runs a machine in this process. When signals ask it to stop, it calls interrupted to
// find out whether one came before.
func (p *program) foreground(c *cli.Context, j *host.Job, interrupted func() bool) error {
	ctx := c.Context
	log, err := j.OpenLog()
	if err != nil {
		return err
	}
	defer log.Close()
	f := &foreground{p: p, job: j, comeBack: p.hint(c, "console", j.FullName()), booted: make(chan string, 1)}
	shown := &shownReporter{LogReporter: runner.LogReporter{Out: f}, all: c.Bool("verbose")}
	e, err := j.Engine(&runner.LogReporter{Out: log}, shown, f)
	if err != nil {
		return err
	}
	f.engine = e
	stopSignals := runner.OnStopSignals(runner.Debounced(f.stop))
	quitSignal := e.TakeQuitSignal()
	if interrupted() {
		f.stop()
	}

	done := make(chan struct{})
	var outcome runner.Outcome
	var runErr error
	go func() {
		defer close(done)
		outcome, runErr = e.Run(ctx)
	}()
	viewCtx, cancel := context.WithCancel(ctx)
	var viewing sync.WaitGroup
	viewing.Add(1)
	go func() {
		defer viewing.Done()
		f.view(viewCtx)
	}()
	<-done
	close(f.booted)
	// The runner has closed the console; the rest of its output is still shown.
	viewing.Wait()
	cancel()
	stopSignals()
	quitSignal()
	f.endProgress()
	if runErr != nil && shown.hidden {
		p.tellVerbose()
	}
	if outcome.QEMUStatus == "" && !f.sent { // no guest has executed
		p.discard(j)
	}
	if runErr != nil && outcome.ExitCode() != exitOK {
		return &exitStatus{code: outcome.ExitCode(), err: runErr}
	}
	return runErr
}

// shownReporter is the log for a user who waits for a machine: without the output of QEMU and other
// programs, unless everything is requested. The error contains the relevant part.
type shownReporter struct {
	runner.LogReporter
	all    bool
	hidden bool // something was; read once the engine has ended
}

// State implements runner.Reporter. The reason for a failure is the program's final error.
func (r *shownReporter) State(s runner.State) {
	if o := s.Outcome; o == nil || o.ExitCode() == exitOK {
		r.LogReporter.State(s)
	}
}

// Message implements runner.Reporter.
func (r *shownReporter) Message(m runner.Message) {
	if m.Source != sourceRunner && !r.all {
		r.hidden = true
		return
	}
	r.LogReporter.Message(m)
}

const sourceRunner = "runner"

// foreground is a machine that runs in this process: it combines the machine's reports and the
// user's input.
type foreground struct {
	p      *program
	job    *host.Job
	engine *host.Engine
	// comeBack is the command that shows the console again.
	comeBack string
	booted   chan string // gets the console's socket, "" for none
	sent     bool        // something was sent to booted; used by the engine's calls only

	mu       sync.Mutex
	raw      bool // the terminal is in raw mode, and shows the guest
	held     []byte
	progress *progress
}

// State implements runner.Reporter.
func (f *foreground) State(s runner.State) {
	f.mu.Lock()
	g := f.progress
	f.mu.Unlock()
	if g != nil { // which writes to f
		g.set(f.job.FullName() + ": " + s.Message)
	}
	if s.Phase == runner.PhaseBooting && !f.sent {
		f.sent = true
		f.booted <- s.Socket(qemucmd.SocketConsole)
	}
}

// Message implements runner.Reporter.
func (f *foreground) Message(runner.Message) {}

// maxHeld limits the output that is held while the guest has the screen, in bytes. The machine's
// log has all of it.
const maxHeld = 64 << 10

// Write implements io.Writer for the log. While the guest has the screen, the output is held so as
// not to spoil it.
func (f *foreground) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.raw {
		f.held = append(f.held, b...)
		if over := len(f.held) - maxHeld; over > 0 {
			_, f.held, _ = bytes.Cut(f.held[over:], []byte("\n"))
		}
		return len(b), nil
	}
	return f.p.stderr.Write(b)
}

// asked is for progress of what the user has requested here, which is also written while the guest
// has the screen: a terminal in raw mode needs carriage returns, and a line of the guest may stand
// there.
type asked struct{ f *foreground }

// Write implements io.Writer.
func (a asked) Write(b []byte) (int, error) {
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	out := b
	if a.f.raw {
		out = append([]byte("\r\x1b[K"), carriageReturns(b)...)
	}
	if _, err := a.f.p.stderr.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// stop requests the machine's end; every further call is less patient.
func (f *foreground) stop() {
	f.mu.Lock()
	if f.progress == nil {
		f.progress = beginProgress(asked{f}, false, f.job.FullName()+": shutting down")
	}
	f.mu.Unlock()
	f.engine.Stop()
}

func (f *foreground) endProgress() {
	f.mu.Lock()
	g := f.progress
	f.progress = nil
	f.mu.Unlock()
	if g != nil {
		g.end()
	}
}

func (f *foreground) view(ctx context.Context) {
	socket := <-f.booted
	if socket == "" {
		return
	}
	conn, err := serial.Dial(ctx, socket)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) { // it has ended again
			f.p.errorf("%v", err)
		}
		return
	}
	if err := f.show(ctx, conn); err != nil {
		f.p.errorf("%v", err)
	}
}

func (f *foreground) show(ctx context.Context, conn net.Conn) error {
	v := &serial.View{Conn: conn, Stdout: f.p.stdout}
	if !f.p.interactive() {
		_, err := v.Run(ctx)
		return err
	}
	f.p.note("Console of %s. Ctrl-C shuts it down, Ctrl-] ends the view.", f.job.FullName())
	raw, err := serial.MakeRaw(f.p.stdin)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer raw.Restore()
	f.setRaw(true)
	v.Stdin, v.Keys, v.Interrupt = f.p.stdin, true, runner.Debounced(f.stop)
	end, err := v.Run(ctx)
	raw.Restore()
	fmt.Fprintln(f.p.stderr)
	f.setRaw(false)
	if err == nil && end == serial.Detached && ctx.Err() == nil {
		f.p.note("%s goes on here. Come back with: %s. Ctrl-C shuts it down.", f.job.FullName(), f.comeBack)
	}
	return err
}

// setRaw records whether the guest has the screen. Held output is written when it no longer does.
func (f *foreground) setRaw(raw bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.raw = raw
	if !raw && len(f.held) > 0 {
		_, _ = f.p.stderr.Write(f.held) // as with other notes
		f.held = nil
	}
}

func carriageReturns(b []byte) []byte {
	out := make([]byte, 0, len(b)+8)
	for _, c := range b {
		if c == '\n' {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}
