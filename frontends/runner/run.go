package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// defaultConfig is where VM-Operator's ConfigMap is mounted.
const defaultConfig = "/etc/opt/vmrunner/config.yaml"

const templateDir = "/opt/vmrunner/templates"

type settings struct {
	config         string
	logFormat      string
	stateFile      string
	terminationLog string
	qemu           string
	prepareTaps    int
	takeOver       int
	makeKVM        string
	importDisk     bool
	images         []string // of disks that are taken over
	logConsole     bool
	console        bool
	vnc            bool
	version        bool
}

const usage = `Usage: vmop-runner [flags]
       vmop-runner export [flags]

Runs one virtual machine from a runner configuration until it ends.
TERM or INT asks the guest to shut down, a second one stops waiting for it.

Example:
  vmop-runner -config /etc/opt/vmrunner/config.yaml

With -console it connects to the serial console of the machine that runs with
this configuration; Ctrl-] ends the view:
  kubectl exec -it POD -- vmop-runner -console

With -vnc it connects a viewer with the VNC server of that machine which is on a
UNIX socket, such as behind a port of this host:
  socat TCP-LISTEN:5901,bind=127.0.0.1,fork \
    EXEC:"kubectl exec -i POD -- vmop-runner -vnc"

With export as the first argument it exports a disk to a machine, and is no
machine; see vmop-runner export -help.

Exit codes: 0 the guest shut down, 1 the machine could not be started,
2 wrong usage, 3 stopped without the guest's consent, 4 failed while running.

Flags:
`

// Main runs the program and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == exportCommand {
		return exportDisk(args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == serveCommand {
		return serveImage(args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == downloadCommand {
		return giveDownload(args[1:], stdout, stderr)
	}
	s, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return runner.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		return runner.ExitUsage
	}
	if s.version {
		fmt.Fprintln(stdout, "vmop-runner", version())
		return runner.ExitOK
	}
	if s.console {
		if err := viewConsole(s.config, os.Stdin, stdout); err != nil {
			fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
			return runner.ExitStart
		}
		return runner.ExitOK
	}
	if s.vnc {
		if err := connectVNC(s.config, os.Stdin, stdout); err != nil {
			fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
			return runner.ExitStart
		}
		return runner.ExitOK
	}
	// A message of an earlier run must not be taken for this one's.
	if err := writeTermination(s.terminationLog, nil); err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
	}
	if s.importDisk {
		return importDisk(os.Getenv(runnerconfig.ImportEnv), s.terminationLog, stdout, stderr)
	}
	var outcome runner.Outcome
	switch {
	case s.prepareTaps != 0:
		err = runner.PrepareTaps(os.Getenv(runnerconfig.PreparedTapsEnv), s.prepareTaps)
	case s.takeOver != 0:
		err = runner.TakeOverData(s.takeOver, podVolumes[0], s.images)
	case s.makeKVM != "":
		err = runner.MakeKVM(s.makeKVM)
	default:
		outcome, err = run(s, stdout)
	}
	if s.prepareTaps != 0 || s.takeOver != 0 || s.makeKVM != "" {
		if err == nil {
			return runner.ExitOK
		}
		outcome = startFailure(err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
	}
	if err := writeTermination(s.terminationLog, outcome.TerminationMessage()); err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
	}
	return outcome.ExitCode()
}

func parse(args []string, stdout io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("vmop-runner", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	for _, name := range []string{"c", "config"} {
		f.StringVar(&s.config, name, defaultConfig, "configuration `file`")
	}
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	f.StringVar(&s.stateFile, "state-file", "", "keep the machine's state in this `file`")
	f.StringVar(&s.terminationLog, "termination-log", "", "write why the machine ended to this `file` (default "+terminationLog+" in a container)")
	f.StringVar(&s.qemu, "qemu", "", "QEMU `executable` (default: the one on the PATH)")
	f.BoolVar(&s.logConsole, "log-console", true, "log what the guest prints on its serial console")
	f.BoolVar(&s.console, "console", false, "connect to the serial console of the running machine")
	f.BoolVar(&s.vnc, "vnc", false, "connect to the VNC server of the running machine, if it is on a UNIX socket")
	f.IntVar(&s.prepareTaps, "prepare-taps", 0, "make the tap interfaces that $"+runnerconfig.PreparedTapsEnv+" names for the `user` with this number, and end")
	f.IntVar(&s.takeOver, "take-over-data", 0, "give the files that VM-Operator's runner wrote in "+podVolumes[0]+", and the images of disks that are named, to the `user` with this number, and end")
	f.StringVar(&s.makeKVM, "make-kvm", "", "make a device node of KVM at this `path` for the group of its directory, and end")
	f.BoolVar(&s.importDisk, "import", false, "make the disk that $"+runnerconfig.ImportEnv+" describes, and end")
	f.BoolVar(&s.version, "version", false, "print the version")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return s, err
	}
	if s.takeOver != 0 {
		s.images = f.Args()
	}
	if err == nil && f.NArg() > len(s.images) {
		err = fmt.Errorf("unexpected argument %q; see vmop-runner -help", f.Arg(0))
	}
	if err == nil && s.logFormat != "text" && s.logFormat != "json" {
		err = fmt.Errorf("-log-format %q: want text or json", s.logFormat)
	}
	return s, err
}

// run runs the machine. If it never comes to an engine, the outcome is a start failure.
func run(s settings, out io.Writer) (runner.Outcome, error) {
	failed := func(err error) (runner.Outcome, error) { return startFailure(err), err }
	// First: the interfaces must end with this process even if something else fails.
	taps, err := runner.OpenTaps(os.Getenv(runnerconfig.PreparedTapsEnv))
	if err != nil {
		return failed(err)
	}
	// To examine the host takes seconds where it is busy. Who ends the pod meanwhile is answered with
	// a termination message, too.
	asked, ask := context.WithCancel(context.Background())
	defer ask()
	handOver := sync.OnceFunc(runner.OnStopSignals(ask))
	defer handOver()
	log := &runner.LogReporter{Out: out, JSON: s.logFormat == "json"}
	var memory lean
	defer memory.end()
	reporters := runner.Reporters{log, &memory}
	if s.stateFile != "" {
		reporters = append(reporters, &runner.StateFile{Path: s.stateFile})
	}
	o := runner.Options{ConsoleLog: s.logConsole, Version: version(), Taps: taps, Volumes: podVolumes, Images: []string{podImages}, MakeImage: makeImage}
	data, c, warnings, err := readConfig(s.config)
	if err != nil {
		return failed(err)
	}
	for _, w := range warnings {
		warn(log, s.config+": "+w)
	}
	o.Config = c
	cluster, end := reportToCluster(&c, log)
	defer end()
	if cluster != nil {
		reporters = append(reporters, cluster)
	}
	o.Reporter = reporters
	if o.Directories, err = directories(&c); err != nil {
		return failed(err)
	}
	o.DisplaySecretDir = secretDir(s.config)
	if o.Template, err = runner.LoadTemplate(&c, templateDir, o.Directories.Data); err != nil {
		return failed(err)
	}
	// The probe is kept with the machine's data, the only persistent directory of a pod.
	probed, err := hostprobe.Probe(asked, hostprobe.Options{QEMU: s.qemu, CacheDir: filepath.Join(o.Directories.Data, "hostprobe")})
	if asked.Err() != nil { // as the engine has it of a stop before the guest runs
		return runner.Outcome{Cause: runner.CauseRequested, Message: "stopped before the machine ran", Orderly: true}, nil
	}
	if err != nil {
		return failed(err)
	}
	o.Host, o.Emulation = probed.Host, runner.Emulation{Reason: probed.KVM.Reason, Message: probed.KVM.Message}
	if c.Runner.VM.Accelerator == string(qemucmd.AcceleratorAuto) && !o.Host.KVM {
		for _, n := range probed.Notes {
			warn(log, n)
		}
	}
	e, err := runner.New(o)
	if err != nil {
		return failed(err)
	}
	if cluster != nil {
		cluster.OnHurry(e.Hurry)
	}
	defer reapOrphans()()
	defer stopOnSignals(e, os.Getpid() == 1)()
	handOver()
	if asked.Err() != nil {
		e.Stop()
	}
	defer e.TakeQuitSignal()()
	defer followConfig(s.config, data, e)()
	return e.Run(context.Background())
}

func startFailure(err error) runner.Outcome {
	return runner.Outcome{Cause: runner.CauseStartFailure, Message: err.Error()}
}

// secretDir is the directory of the display secret's files: that of the configuration file, even if
// this is a link into a volume, whose target directory is replaced with each change.
func secretDir(config string) string {
	dir := filepath.Dir(config)
	real, err := filepath.EvalSymlinks(config)
	if err != nil {
		return dir
	}
	if _, err := os.Lstat(filepath.Join(dir, "..data")); err == nil {
		return dir
	}
	return filepath.Dir(real)
}

// followConfig passes changes of the configuration's files to the engine until the returned
// function is called.
func followConfig(path string, content []byte, e *runner.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &runner.ConfigFollower{
		Path: path, Content: content,
		Config: func(c runnerconfig.Config, warnings []string) {
			for _, w := range warnings {
				e.Note(runner.LevelWarning, path+": "+w)
			}
			// The engine reports what it refuses.
			_ = e.Reconfigure(c)
		},
		Refused: e.RefuseConfig,
		Changed: e.RereadSecrets,
		Slow:    func(err error) { e.Note(runner.LevelWarning, slowFollowing(err)) },
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.Follow(ctx); err != nil {
			e.Note(runner.LevelWarning, fmt.Sprintf("changes of the configuration will not be noticed: %v", err))
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func slowFollowing(err error) string {
	return fmt.Sprintf("changes of the configuration and of secrets are noticed late, within ten seconds: %v (fs.inotify.max_user_instances bounds how many programs of a user watch files)", err)
}

// stopOnSignals passes signals on to the engine until the returned function is called. The first
// process of a container gets its first signal from the kubelet, and the same again whenever the
// container runtime or the node's shutdown repeats it: there, a second one is no request not to
// wait for the guest.
func stopOnSignals(e *runner.Engine, container bool) (end func()) {
	return runner.OnStopSignals(stopRequests(e.Stop, container))
}

func stopRequests(stop func(), container bool) func() {
	if container {
		return sync.OnceFunc(stop)
	}
	return runner.Debounced(stop)
}
