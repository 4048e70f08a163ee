package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// New checks the options and returns an engine. It starts nothing.
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
	e := &Engine{o: o, made: madeDisks{toGrow: map[string]int64{}}, state: State{
		Name: r.VM.Name, Namespace: r.Namespace,
		RunnerPID: os.Getpid(), RunnerVersion: o.Version,
		DataDir: o.Directories.Data, RuntimeDir: o.Directories.Runtime,
		PowerdownTimeout: *r.VM.PowerdownTimeout,
		Generation:       r.Generation,
		Login:            Login{Wanted: wantedUser(&o.Config)},
		Sockets:          map[string]string{},
	}, desired: desired{config: o.Config, secret: true}, wake: make(chan struct{}, 1)}
	e.attachments.e = e
	e.certificate = e.certificateDigest()
	for i := range stopCount {
		e.stops[i], e.stop[i] = context.WithCancel(context.Background())
	}
	e.ending, e.announced = context.WithCancel(context.Background())
	return e, nil
}

// Stop asks the guest to shut down within the power-down timeout. A second Stop makes QEMU quit
// without waiting for the guest, a third kills it. Stop returns at once and may be called at any
// time.
func (e *Engine) Stop() {
	e.mu.Lock()
	i := min(e.requests, stopCount-1)
	e.requests++
	e.mu.Unlock()
	e.stop[i]()
}

// Run runs the machine until it ends. The error is nil if the machine ran and the guest shut down,
// by itself or on request, and if it was stopped before the machine ran; the outcome distinguishes
// these. When ctx ends, the machine is stopped without asking the guest.
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
	if errors.Is(err, ErrRunning) || errors.Is(err, ErrLocked) {
		// Another engine reports the machine's state.
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
		s.Attachments, s.AttachmentKey, s.Disks = nil, "", nil
	})
	// The last state is reported before another engine can take over the machine.
	if cerr := e.unlock(); cerr != nil {
		e.message(LevelWarning, "unlock: %v", cerr)
	}
	return outcome, err
}

func (e *Engine) run() (Outcome, error) {
	// Before the guest runs, a stop may be immediate.
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
	mapped, _ := os.ReadFile("/proc/self/uid_map") // without the map, root counts as the host's root
	if warning := rootWarning(os.Geteuid(), string(mapped), len(e.o.Volumes) > 0); warning != "" {
		e.message(LevelWarning, "%s", warning)
	}
	groups := e.deviceGroups() // also those of devices about to be refused
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

func (e *Engine) cleanUp() error {
	if len(e.locks) < 2 {
		return nil
	}
	return removeRuntimeDir(e.o.Directories.Runtime)
}
