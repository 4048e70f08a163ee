package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// job is everything that an engine needs to run a machine. A detached run gets
// it from the process that was called.
type job struct {
	Config   runnerconfig.Config
	Host     qemucmd.Host
	Template string
	Root     string
	Machine  string
	Runtime  string
	// Manifest is kept with the machine, as it is run.
	Manifest []byte
}

func (j *job) directories() directories {
	return directories{root: j.Root, machine: j.Machine, runtime: j.Runtime}
}

func (j *job) name() string {
	return fullName(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
}

// prepare makes the job of a manifest. Nothing of the machine is touched.
func (p *program) prepare(ctx context.Context, c *cli.Context, o *spec.Object) (*job, error) {
	d, err := p.machineDirectories(c, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	local, err := p.local(c, o, d)
	if err != nil {
		return nil, err
	}
	config, err := reconcile.LocalRunnerConfig(o.VirtualMachine, local)
	if err != nil {
		p.report(problemsOf(o, err))
		return nil, errSilent
	}
	config.Runner.Namespace = namespaceOr(o.Namespace)
	runnerconfig.Default(&config)
	j := &job{Config: config, Root: d.root, Machine: d.machine, Runtime: d.runtime, Manifest: manifestText(o)}
	if err := ensurePrivate(d.machine); err != nil {
		return nil, fmt.Errorf("directory of the machine: %w", err)
	}
	base := runtimeBase(p.getenv, os.Geteuid())
	for _, dir := range []string{base, filepath.Dir(d.runtime)} {
		if err := ensurePrivate(dir); err != nil {
			return nil, fmt.Errorf("runtime directory: %w", err)
		}
	}
	if j.Template, err = runner.LoadTemplate(&config, filepath.Join(d.root, "templates"), d.machine); err != nil {
		return nil, err
	}
	probed, err := p.probe(ctx)
	if err != nil {
		return nil, err
	}
	j.Host = probed.Host
	if config.Runner.VM.Accelerator == string(qemucmd.AcceleratorAuto) && !j.Host.KVM {
		for _, note := range probed.Notes {
			if reason, ok := strings.CutPrefix(note, "KVM: "); ok {
				p.note("Software emulation is used, which is slow, because there is no KVM: %s", reason)
			}
		}
	}
	return j, nil
}

// manifestText is the object as it was written. Items of a list are JSON, which
// is YAML too.
func manifestText(o *spec.Object) []byte {
	return append(bytes.TrimRight(o.Raw, "\n"), '\n')
}

// probe asks this machine's QEMU what it offers.
func (p *program) probe(ctx context.Context) (hostprobe.Result, error) {
	g := p.begin("asking QEMU what this host offers")
	defer g.end()
	o := hostprobe.Options{}
	if dir := p.cacheDir(); dir != "" {
		o.CacheDir = filepath.Join(dir, "vmop", "hostprobe")
	}
	return hostprobe.Probe(ctx, o)
}

// cacheDir is the user's cache directory; "" if there is none.
func (p *program) cacheDir() string {
	if dir := p.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := p.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache")
	}
	return ""
}

// engine makes the engine of a job. Its state and manifest are kept in the
// machine's directory, by keeper.
func (j *job) engine(reporters ...runner.Reporter) (*runner.Engine, *keeper, error) {
	d := j.directories()
	k := &keeper{file: &runner.StateFile{Path: d.stateFile()}, manifest: d.manifestFile(), text: j.Manifest}
	e, err := runner.New(runner.Options{
		Config: j.Config, Host: j.Host, Template: j.Template, Version: version(),
		Directories: runner.Directories{Data: d.machine, Runtime: d.runtime},
		Reporter:    append(runner.Reporters{k}, reporters...),
	})
	return e, k, err
}

// keeper keeps the state and the manifest in files. It waits until the engine
// has the machine's lock: until then, they may be another runner's.
type keeper struct {
	file     *runner.StateFile
	manifest string
	text     []byte

	mu   sync.Mutex
	ours bool
	err  error
}

// State implements runner.Reporter.
func (k *keeper) State(s runner.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ours && s.Phase != runner.PhaseStarting {
		return
	}
	k.keep(s)
}

// Message implements runner.Reporter.
func (k *keeper) Message(runner.Message) {}

func (k *keeper) keep(s runner.State) {
	if !k.ours {
		k.ours = true
		k.err = replaceFile(k.manifest, k.text)
	}
	k.file.State(s)
}

// ended keeps the last state of an engine that did not come to start QEMU,
// unless another runner has the machine.
func (k *keeper) ended(s runner.State, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ours && !errors.Is(err, runner.ErrRunning) {
		// One that was stopped early enough does not know about another runner.
		if holders, err := runner.Holders(filepath.Dir(k.file.Path)); err == nil && len(holders) == 0 {
			k.keep(s)
		}
	}
	if !k.ours {
		return nil
	}
	return errors.Join(k.err, k.file.Err())
}

// readJob reads the job that the calling process wrote.
func readJob(r io.Reader) (*job, error) {
	j := &job{}
	if err := json.NewDecoder(r).Decode(j); err != nil {
		return nil, fmt.Errorf("read what to run: %w", err)
	}
	return j, nil
}
