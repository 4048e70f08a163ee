package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Engine runs a machine of this host in this process. Its state and its manifest are kept in the
// machine's directory.
type Engine struct {
	*runner.Engine
	job     *Job
	keeper  *keeper
	config  string // the file that the machine follows
	running <-chan struct{}
}

func (e *Engine) follow(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-e.running:
	}
	f := runner.ConfigFollower{
		Path:    e.config,
		Config:  func(c runnerconfig.Config, _ []string) { _ = e.Reconfigure(c) },
		Refused: e.RefuseConfig,
		Changed: func() {},
		Slow: func(err error) {
			e.Note(runner.LevelWarning, fmt.Sprintf("changes of the machine are noticed late: %v", err))
		},
	}
	if err := f.Follow(ctx); err != nil {
		e.Note(runner.LevelWarning, fmt.Sprintf("changes of the machine will not be noticed: %v", err))
	}
}

// neighbour returns the NAMESPACE/NAME of the machine of another data directory, "" if it is not
// this host's.
func (j *Job) neighbour(dataDir string) string {
	name, err := filepath.Rel(filepath.Dir(filepath.Dir(j.Directories.Data)), dataDir)
	if err != nil || !filepath.IsLocal(name) || strings.Count(name, string(filepath.Separator)) != 1 {
		return ""
	}
	return filepath.ToSlash(name)
}

// begins must be called before anything is started: a state shows that the machine was started
// since the job was prepared.
func (j *Job) begins() { j.first = j.first && !exists(j.Directories.StateFile()) }

// Engine returns the engine of a job. It starts nothing.
func (j *Job) Engine(reporters ...runner.Reporter) (*Engine, error) {
	d := j.Directories
	j.begins()
	k := &keeper{file: &runner.StateFile{Path: d.StateFile()}, job: j, running: make(chan struct{})}
	e, err := runner.New(runner.Options{
		Config: j.Config, Host: j.Host, Template: j.Template, Version: j.Version, NewDisks: j.FreshDisks, Secrets: j.Secrets, MakeImage: j.makeImage,
		Field: machineconfig.ManifestField, Machine: j.neighbour,
		Directories: runner.Directories{Data: d.Data, Runtime: d.Runtime},
		Reporter:    append(runner.Reporters{k}, reporters...),
	})
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e, job: j, keeper: k, config: filepath.Join(d.Runtime, runner.ConfigFile), running: k.running}, nil
}

// Run is [runner.Engine.Run]; its error also includes failures to keep state. The machine follows
// [Host.Apply].
func (e *Engine) Run(ctx context.Context) (runner.Outcome, error) {
	running, ended := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { e.follow(running) })
	outcome, err := e.Engine.Run(ctx)
	ended()
	following.Wait()
	err = errors.Join(err, e.keeper.ended(e.State(), err))
	if !e.keeper.booted() {
		if uerr := e.job.undo(e.MadeImages(), e.State()); uerr != nil {
			e.Note(runner.LevelWarning, fmt.Sprintf("what the start has made stays: %v", uerr))
		}
	}
	return outcome, err
}
