package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tap"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const (
	sigTERM = syscall.SIGTERM
	sigKILL = syscall.SIGKILL
)

// preparing is what is said while nothing better is known.
const preparing = "preparing the machine"

// Options configure an [Engine].
type Options struct {
	// Config describes the machine. What it leaves out is as runnerconfig.Default
	// has it; it must be valid then, see runnerconfig.Validate.
	Config runnerconfig.Config
	// Host is what the machine runs on; package hostprobe finds out.
	Host qemucmd.Host
	// Directories are the machine's; see [DefaultDirectories]. One that is empty is that
	// of the configuration, as machineconfig.ForHost makes it. Both are needed.
	Directories Directories
	// Template is the text of a custom machine type; empty is the standard one.
	Template string
	// DisplaySecretDir holds the files display-password and password-expiry;
	// empty means that the display has no password.
	DisplaySecretDir string
	// Secrets are the contents of Secrets by their names and keys: documents for
	// cloud-init of which the configuration names no file.
	Secrets map[string]map[string][]byte
	// Reporter is told what happens; nil tells nobody.
	Reporter Reporter
	// ConsoleLog tells the reporter each line that the guest prints on its serial
	// console, with the source "console".
	ConsoleLog bool
	// Volumes are directories whose content others may have written, such as those
	// in which a pod's volumes are mounted: no symbolic link below them is followed
	// to an image or to the machine's data.
	Volumes []string
	// Images are such directories with images that are only read, of CDs and kernels:
	// links below them may lead to another file in the same directory, and nowhere
	// else.
	Images []string
	// NewDisks are the names of disks whose images may be made anew, empty, although
	// the machine has had others.
	NewDisks []string
	// MakeImage makes the disks of drives with an image; nil makes none.
	MakeImage ImageMaker
	// Taps are tap interfaces that are open already, by the position of their
	// network; see [OpenTaps]. The engine hands them to QEMU and closes them, once
	// [Engine.Run] was called. It opens those that are missing.
	Taps map[int]*tap.Device
	// Emulation says why Host has no KVM.
	Emulation Emulation
	// Field is what whoever has written the machine down calls a field of its
	// configuration, such as "vm.drives[0]", and Machine the machine of a data directory;
	// nil, and an empty name, leave both as they are.
	Field, Machine func(string) string
	// Version of the program, for the state.
	Version string

	clock clock
	// holds is how many seconds the requests of a guest wait for an exporter that is gone;
	// 0 is reconnectDelay. Tests wait longer, on machines that are busy.
	holds int
}

// Engine runs one machine, once.
type Engine struct {
	o Options

	// Each Stop ends the next of these.
	stops [3]context.Context
	stop  [3]context.CancelFunc

	locks []*os.File
	// certificate is a digest of what the display identifies itself by since the start.
	certificate string
	// toGrow are the sizes of disks that QEMU has to enlarge, by their names.
	toGrow map[string]int64
	// inherited are the files that QEMU inherits behind its monitor, which this
	// process closes once QEMU has them; see handOver.
	inherited []*os.File
	// made are the images of disks that this engine has made.
	made []string
	// ephemeral are the disks that were made for this run.
	ephemeral []string
	// opened has the paths of files by the names that QEMU has for their descriptors.
	opened sync.Map

	mu       sync.Mutex // also serializes the calls of the reporter
	state    State
	reported live.Reported
	locked   bool // all of locks are there
	requests int
	asked    bool // the machine was told to end by this engine
	shutdown *qmp.ShutdownEvent
	panicked bool
	// panics are how often the guest has panicked, panicTold when an event told.
	panics    int
	panicTold time.Time
	// resetEnds: QEMU was told to end at a reset, or may have been.
	resetEnds bool
	// revived: the machine went on after QEMU had told that it ends, as one can that
	// a custom machine type keeps.
	revived bool
	// ending is done once QEMU has told that it ends.
	ending    context.Context
	announced context.CancelFunc
	// wished is what the machine shall be now.
	wished wish
	// ticketing says that the display was started with a password.
	ticketing bool

	memory memoryEvents // as they were before QEMU
	// lostShares are the tags of shares that nobody serves any more.
	lostShares []string
	// attachments are the ways to disks that other pods export.
	attachments attachments
	poke        chan struct{} // wakes the follower
	login       *login        // nil before QEMU runs, or without the VMOP agent's port
	timeout     broadcast     // tells that the power-down timeout was changed
	progress    progress
}

// The stages of stopping, as indexes into Engine.stops.
const (
	stopAsk   = iota // ask the guest
	stopQuit         // do not wait for the guest
	stopKill         // do not wait for QEMU
	stopCount = iota
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

// monitorFD is the first descriptor that a child inherits beside the standard
// ones: os/exec puts ExtraFiles there.
const monitorFD = 3

// New checks the options and makes an engine. It starts nothing.
func New(o Options) (*Engine, error) {
	o.Config = runnerconfig.Defaulted(o.Config)
	if err := check(&o.Config); err != nil {
		return nil, err
	}
	o.Directories.Data = cmp.Or(o.Directories.Data, o.Config.Runner.DataDir)
	o.Directories.Runtime = cmp.Or(o.Directories.Runtime, o.Config.Runner.RuntimeDir)
	if o.Directories.Data == "" || o.Directories.Runtime == "" {
		return nil, errors.New("runner: a data and a runtime directory are needed")
	}
	for _, dir := range []*string{&o.Directories.Data, &o.Directories.Runtime} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return nil, fmt.Errorf("runner: %w", err)
		}
		*dir = abs
	}
	if o.Reporter == nil {
		o.Reporter = Reporters(nil)
	}
	o.Config = (&Engine{o: o}).withDigests(o.Config)
	r := &o.Config.Runner
	e := &Engine{o: o, toGrow: map[string]int64{}, state: State{
		Name: r.VM.Name, Namespace: r.Namespace,
		RunnerPID: os.Getpid(), RunnerVersion: o.Version,
		DataDir: o.Directories.Data, RuntimeDir: o.Directories.Runtime,
		PowerdownTimeout: *r.VM.PowerdownTimeout,
		Generation:       r.Generation,
		Login:            Login{Wanted: wantedUser(&o.Config)},
		Sockets:          map[string]string{},
	}, wished: wish{config: o.Config, secret: true}, poke: make(chan struct{}, 1)}
	e.attachments.e = e
	e.certificate = e.certificateDigest()
	for i := range stopCount {
		e.stops[i], e.stop[i] = context.WithCancel(context.Background())
	}
	e.ending, e.announced = context.WithCancel(context.Background())
	return e, nil
}

// Stop asks for the machine's end: the guest is asked to shut down within the
// power-down timeout. A second Stop tells QEMU to quit without waiting for the
// guest, a third kills it. Stop returns at once and may be called at any time.
func (e *Engine) Stop() {
	e.mu.Lock()
	i := min(e.requests, stopCount-1)
	e.requests++
	e.mu.Unlock()
	e.stop[i]()
}

// MadeImages are the images of disks that were not there before this engine has made them,
// without those that go with its machine. It is asked once [Engine.Run] has returned.
func (e *Engine) MadeImages() []string { return slices.Clone(e.made) }

// State returns what is known now.
func (e *Engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.clone()
}

func (s State) clone() State {
	sockets := make(map[string]string, len(s.Sockets))
	for k, v := range s.Sockets {
		sockets[k] = v
	}
	s.Sockets = sockets
	s.Conditions = slices.Clone(s.Conditions)
	s.StatusConditions = slices.Clone(s.StatusConditions)
	s.ConsoleClients = slices.Clone(s.ConsoleClients)
	s.Guest = s.Guest.clone()
	s.DeviceGroups = slices.Clone(s.DeviceGroups)
	s.Attachments = slices.Clone(s.Attachments)
	return s
}

// update changes the state and reports it.
func (e *Engine) update(change func(*State)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.state.Phase
	change(&e.state)
	if e.state.Phase != before {
		e.state.Since = time.Now()
		e.progress.enters(e.state.Phase)
	}
	e.report()
}

func (e *Engine) enter(p Phase, format string, args ...any) {
	e.update(func(s *State) { s.Phase, s.Message = p, fmt.Sprintf(format, args...) })
}

func (e *Engine) terminating(message string) {
	e.message(LevelInfo, "%s", message)
	e.update(func(s *State) { s.Message = message })
}

func (e *Engine) message(level Level, format string, args ...any) {
	e.output(level, "runner", fmt.Sprintf(format, args...))
}

func (e *Engine) output(level Level, source, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.o.Reporter.Message(Message{Time: time.Now(), Level: level, Source: source, Text: text})
}

func (e *Engine) childLine(source, text string) { e.output(LevelInfo, source, text) }

// Run runs the machine until it ends. The error is nil if the machine ran and
// the guest shut down, by itself or on request, and if it was asked to stop before
// the machine ran, which is in order, too; the outcome says which it was. When ctx ends, the machine is stopped without asking the guest.
func (e *Engine) Run(ctx context.Context) (outcome Outcome, err error) {
	defer func() { e.progress.ends(err) }()
	defer context.AfterFunc(ctx, func() {
		e.stop[stopAsk]()
		e.stop[stopQuit]()
	})()
	outcome, err = e.run()
	// Nothing is left to close unless QEMU was not started.
	if cerr := errors.Join(e.closeInherited(), closeTaps(e.o.Taps)); cerr != nil {
		e.message(LevelWarning, "%v", cerr)
	}
	if err != nil {
		outcome.Message = err.Error()
	}
	if errors.Is(err, ErrRunning) {
		// The state is another engine's to tell.
		e.message(LevelError, "%v", err)
		return outcome, errors.Join(err, e.unlock())
	}
	e.removeEphemeral()
	if cerr := e.cleanUp(); cerr != nil {
		e.message(LevelWarning, "clean up: %v", cerr)
	}
	e.update(func(s *State) {
		s.Phase, s.Message, s.Outcome = PhaseStopped, outcome.Message, &outcome
		s.QEMUPID, s.RunnerPID, s.QuitSignal, s.CPUs, s.RAM, s.Started = 0, 0, false, 0, 0, nil
		s.Sockets = map[string]string{}
		s.Conditions, s.ConsoleClient, s.ConsoleClients, s.Paused = nil, "", nil, false
		s.Guest, s.Login = Guest{}, Login{}
		s.Attachments, s.AttachmentKey = nil, ""
	})
	// The last state is told before somebody else can have the machine.
	if cerr := e.unlock(); cerr != nil {
		e.message(LevelWarning, "unlock: %v", cerr)
	}
	return outcome, err
}

func (e *Engine) run() (Outcome, error) {
	// Until the guest runs, every stop may be at once.
	start := e.stops[stopAsk]
	startFailed := func(err error) (Outcome, error) {
		if start.Err() != nil {
			return Outcome{Cause: CauseRequested, Message: stoppedBefore, Orderly: true}, nil
		}
		return Outcome{Cause: CauseStartFailure}, fmt.Errorf("start %s: %w", e.o.Config.Runner.VM.Name, err)
	}
	dirs := e.o.Directories
	if err := e.checkWritable(); err != nil {
		return startFailed(err)
	}
	if err := errors.Join(makeDataDir(dirs.Data), makeRuntimeDir(dirs.Runtime)); err != nil {
		return startFailed(err)
	}
	if err := e.lockAll(start); err != nil {
		return startFailed(err)
	}
	mapped, _ := os.ReadFile("/proc/self/uid_map") // without it root is taken for root
	if warning := rootWarning(os.Geteuid(), string(mapped), len(e.o.Volumes) > 0); warning != "" {
		e.message(LevelWarning, "%s", warning)
	}
	groups := e.deviceGroups() // also of those that are about to be refused
	e.update(func(s *State) {
		s.Phase, s.Message, s.DeviceGroups = PhaseInitializing, preparing, groups
	})
	if err := cleanRuntimeDir(dirs.Runtime); err != nil {
		return startFailed(err)
	}
	if err := writePID(dirs.Runtime, "runner", os.Getpid()); err != nil {
		return startFailed(err)
	}
	cmd, err := e.prepare(start)
	if err != nil {
		return startFailed(err)
	}
	e.enter(PhaseStarting, "starting QEMU %s, %s", cmd.MachineType, cmd.Accelerator)
	con, err := listenConsole(dirs.Runtime)
	if err != nil {
		return startFailed(err)
	}
	if e.o.ConsoleLog {
		con.log(func(text string) { e.output(LevelInfo, sourceConsole, text) })
	}
	m, err := e.startAll(start, cmd, con)
	defer e.attachments.closeAll()
	if err != nil {
		kerr := e.abort(m)
		cerr := con.close()
		if kerr != nil {
			e.message(LevelWarning, "%v", kerr)
		}
		if cerr != nil {
			e.message(LevelWarning, "%v", cerr)
		}
		return startFailed(err)
	}
	outcome, err := e.supervise(m)
	if nerr := e.noteImages(); nerr != nil {
		e.message(LevelWarning, "%v", nerr)
	}
	if cerr := con.close(); cerr != nil {
		e.message(LevelWarning, "%v", cerr)
	}
	return outcome, err
}

// startAll starts the helpers and QEMU, applies the configuration and lets the
// guest go. Where it fails, what it returns is to be aborted.
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

// startHelper starts a process that listens on a socket which exists before it
// does: there is nothing to wait for.
func (e *Engine) startHelper(m *machine, h qemucmd.Helper) error {
	file, err := listenFile(h.Socket)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	// It inherits the data directory's lock: nobody else writes its state while
	// it lives.
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
	// QEMU inherits the locks and so holds them as long as it lives.
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

// listenFile makes a listening UNIX socket for a child to inherit.
func listenFile(path string) (*os.File, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	return f, errors.Join(err, l.Close())
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

// abort ends whatever of a machine was started; the guest has not run.
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
		h.signal(sigTERM) // a QEMU that never connected to it does not hang up, either
	}
	return errors.Join(append(errs, endHelpers(slices.Concat(m.helpers, m.servers)))...)
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

// supervise follows a running machine to its end.
func (e *Engine) supervise(m *machine) (Outcome, error) {
	var watching sync.WaitGroup
	watching.Add(2)
	go func() {
		defer watching.Done()
		e.watchAll(m)
	}()
	running, terminate := context.WithCancel(context.Background())
	defer terminate()
	if m.guest != nil {
		watching.Add(1)
		go func() {
			defer watching.Done()
			m.guest.follow(running)
		}()
	}
	if m.login != nil {
		watching.Add(1)
		go func() {
			defer watching.Done()
			m.login.follow(context.Background(), m.client) // which ends with QEMU
		}()
	}
	go func() {
		defer watching.Done()
		m.follower.follow(running)
	}()
	watching.Go(func() { e.boundEnd(m) })
	helperEnded := make(chan *child, len(m.helpers))
	for _, h := range m.helpers {
		watching.Add(1)
		go func() {
			defer watching.Done()
			<-h.done
			helperEnded <- h
		}()
	}
	for _, s := range m.servers {
		watching.Go(func() { e.servesShare(m, s) })
	}
	var failed *child
	select {
	case <-m.qemu.done:
	case <-e.stops[stopAsk].Done():
	case failed = <-helperEnded:
		// It may have ended because QEMU did.
		grace, cancel := context.WithTimeout(context.Background(), helperGrace)
		if m.qemu.wait(grace) == nil {
			failed = nil
		}
		cancel()
	}
	terminate()
	var forced bool
	var stuck error
	if !m.qemu.ended() {
		e.mu.Lock()
		e.asked = true
		e.mu.Unlock()
		e.enter(PhaseTerminating, "shutting the guest down")
		if failed != nil {
			e.message(LevelError, "%s; shutting the machine down", failed.describe())
		}
		forced, stuck = e.powerDown(e.stops[stopQuit], e.stops[stopKill], m)
	}
	if stuck != nil {
		// The process is beyond reach, and so are the events that it would close.
		return Outcome{Cause: CauseQEMUFailure}, fmt.Errorf("QEMU (process %d) is stuck: %w", m.qemu.process.Pid, stuck)
	}
	// Its last events are in the socket.
	select {
	case <-m.client.Done():
	case <-time.After(eventGrace):
	}
	if err := errors.Join(m.client.Close(), endHelpers(slices.Concat(m.helpers, m.servers))); err != nil {
		e.message(LevelWarning, "%v", err)
	}
	watching.Wait()
	return e.judge(m, forced, failed)
}

// judge says how the machine ended.
func (e *Engine) judge(m *machine, forced bool, failed *child) (Outcome, error) {
	e.mu.Lock()
	shutdown, asked, panicked, resetEnds := e.shutdown, e.asked, e.panicked, e.resetEnds
	e.mu.Unlock()
	end := machineEnd{
		status: m.qemu.status.String(), success: m.qemu.status.Success(),
		described: m.qemu.describe(), forced: forced, hurried: e.stops[stopQuit].Err() != nil, asked: asked, panicked: panicked, resetEnds: resetEnds,
	}
	if shutdown != nil {
		end.reason, end.guest = shutdown.Reason, shutdown.Guest
	}
	if failed != nil {
		end.helper = failed.describe()
	}
	if ws, ok := m.qemu.status.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == sigKILL {
		end.memory = e.memory.explain(ownCgroup())
	}
	o := end.outcome()
	if o.ExitCode() != ExitOK {
		return o, errors.New(o.Message)
	}
	return o, nil
}

// cleanUp removes the runtime directory, if it is this engine's.
func (e *Engine) cleanUp() error {
	if len(e.locks) < 2 {
		return nil
	}
	return removeRuntimeDir(e.o.Directories.Runtime)
}

// handOver lets QEMU inherit a file and returns its descriptor there. Without a file
// that is one which stays closed, unless a file is put into its place later.
func (e *Engine) handOver(f *os.File) int {
	e.inherited = append(e.inherited, f)
	return monitorFD + len(e.inherited)
}

// closeInherited closes this process's copies of what QEMU inherits.
func (e *Engine) closeInherited() error {
	var errs []error
	for _, f := range e.inherited {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	e.inherited = nil
	return errors.Join(errs...)
}

func writePID(dir, name string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("process id of %s: %w", name, err)
	}
	return nil
}
