package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Given is what a machine is given on this host, beside its manifest.
type Given struct {
	// Disks maps names of disks to files or block devices that exist; see
	// machineconfig.Host. The paths are absolute.
	Disks map[string]string `json:"disks,omitempty"`
	// ImageRepository is the directory of the CD images and kernels that the
	// manifest names by relative paths; empty is [Host.ImagesDir].
	ImageRepository string `json:"imageRepository,omitempty"`
	// Accelerator overrides that of the manifest, if not empty.
	Accelerator spec.Accelerator `json:"accelerator,omitempty"`
	// ManifestDir is the folder that the manifest is from, an absolute path: hostPaths
	// of shares are relative to it.
	ManifestDir string `json:"manifestDir,omitempty"`
	// Shares are folders for the guest beside those of the manifest, and what its
	// claims are here.
	Shares []machineconfig.LocalShare `json:"shares,omitempty"`
	// Secrets are files with manifests of Secrets, of which the machine gets the keys
	// that it names. The paths are absolute; the content is kept nowhere else.
	Secrets []string `json:"secrets,omitempty"`
}

// Local is what reconcile must know about this host to run a machine: what it is
// given now, and what it was given before.
func (h *Host) Local(o *spec.Object, g Given) (machineconfig.Host, error) {
	if o == nil || o.VirtualMachine == nil {
		return machineconfig.Host{}, errNoMachine
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return machineconfig.Host{}, err
	}
	def, err := d.Definition()
	if err != nil {
		return machineconfig.Host{}, err
	}
	g = g.canonical(o.VirtualMachine).over(def.Given)
	// What was given before to a disk that is in the manifest no more is kept, and
	// used for none.
	maps.DeleteFunc(g.Disks, func(name, path string) bool {
		return diskName(o.VirtualMachine, name) == "" && def.Disks[name] == path
	})
	l := machineconfig.Host{
		DataDir: d.Data, RuntimeDir: d.Runtime,
		ImageRepository: g.ImageRepository,
		Disks:           g.Disks,
		ShareBase:       g.ManifestDir,
		Shares:          g.Shares,
		ExplicitPorts:   machineconfig.ExplicitPorts(o),
		Accelerator:     g.Accelerator,
	}
	if l.ImageRepository == "" {
		l.ImageRepository = h.ImagesDir()
	}
	return l, nil
}

// Job is everything that an engine needs to run a machine. A machine in the
// background gets it from the process that starts it.
type Job struct {
	Directories Directories
	Config      runnerconfig.Config
	Host        qemucmd.Host
	// Template is the text of a custom machine type.
	Template string
	// Manifest and Definition are kept with the machine, as it is run.
	Manifest   []byte
	Definition Definition
	// FreshDisks are the disks whose images may be made anew although the machine
	// has had others.
	FreshDisks []string
	// Secrets are what the machine gets of Secrets, by their names and keys.
	Secrets map[string]map[string][]byte
	// Images are what the cache calls the images that disks are made of, by the names of
	// the disks, and ImageCache is the directory of that.
	Images     map[string]string
	ImageCache string
	// Untouched is what there was of a machine that no start has made anything of; see
	// [Untouched]. It is nil of others.
	Untouched *Untouched
	// Version of the program, for the state.
	Version string

	// Notes are what the probe of the host has to say.
	Notes []string `json:"-"`
	// NewDisks are the images that the start makes.
	NewDisks []NewDisk `json:"-"`

	host *Host // that has prepared it
	// service is the unit of systemd that has started it, if one has.
	service string
	// Interrupted, if not nil, is asked by [Job.Supervise] once signals stop the machine:
	// whether one came before that.
	Interrupted func() bool `json:"-"`

	// first says that there was nothing of a machine of that name, and nothing that a
	// deleted one has left, and that nobody else has started it before this job began.
	first bool
}

// NewDisk is a disk image that a start makes.
type NewDisk struct {
	Name, Path string
	// Size in bytes; 0 is that of Image.
	Size int64
	// Image is what it is a copy of, without passwords and queries; an image without
	// is empty. Ephemeral says that it is removed at the machine's end.
	Image     string
	Ephemeral bool
}

// FullName is the machine's NAMESPACE/NAME.
func (j *Job) FullName() string {
	return FullName(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
}

// JobOptions say how a job is prepared.
type JobOptions struct {
	Given Given
	// FreshDisks are the names of disks whose empty images may be made although the
	// machine has had others; see [EmptyDiskError].
	FreshDisks []string
	// Image says who is told how the image of a disk is fetched, which Prepare does;
	// nil tells nobody.
	Image func(source string) ImageOptions
	// Probe says how QEMU is asked what it offers.
	Probe hostprobe.Options
	// Version of the program, for the state.
	Version string
}

// Prepare makes the job of a manifest's machine, as [Host.Create] takes it.
// Of the machine nothing is touched but its directory, which is made. Images that its
// start makes disks of are fetched into the cache. Where the
// host would have to provide something, such as a kernel or a disk that is not there, the
// error has a machineconfig.Error for each, or a [*GivenError]; where the machine would get an empty disk in place of one that it has had, an
// [*EmptyDiskError].
func (h *Host) Prepare(ctx context.Context, o *spec.Object, options JobOptions) (job *Job, err error) {
	if o, err = written(o); err != nil {
		return nil, err
	}
	if problem := tooLong(h.runtime, h.env); problem != "" {
		return nil, errors.New(problem)
	}
	config, secret, err := h.configuration(o, options.Given)
	if err != nil {
		return nil, err
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	j := &Job{Directories: d, Config: config, Secrets: secret, Manifest: manifestText(o), Version: options.Version, ImageCache: h.cache().dir, host: h}
	if err := j.decideDisks(o.VirtualMachine, options); err != nil {
		return nil, err
	}
	local, err := h.Local(o, options.Given)
	if err != nil {
		return nil, err
	}
	if err := checkGiven(o.VirtualMachine, &config, local.ImageRepository); err != nil {
		return nil, err
	}
	j.first = !exists(d.Data)
	if j.Untouched, err = d.untouched(); err != nil {
		return nil, err
	}
	if err := h.makeDirectories(j.Directories); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && j.first {
			_ = removeEmpty(d.Data)
		}
	}()
	if j.Template, err = runner.LoadTemplate(&config, h.TemplatesDir(), j.Directories.Data); err != nil {
		return nil, err
	}
	if err := h.pullImages(ctx, j, options.Image); err != nil {
		return nil, err
	}
	probed, err := hostprobe.Probe(ctx, options.Probe)
	if err != nil {
		return nil, err
	}
	j.Host, j.Notes = probed.Host, probed.Notes
	return j, nil
}

// configuration is what a runner of the machine gets, with what it gets of secrets.
func (h *Host) configuration(o *spec.Object, g Given) (runnerconfig.Config, secrets, error) {
	local, err := h.Local(o, g)
	if err != nil {
		return runnerconfig.Config{}, nil, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return c, nil, err
	}
	c.Runner.Namespace = namespaceOr(o.Namespace)
	runnerconfig.Default(&c)
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil {
		return c, nil, err
	}
	if err := h.checkMerged(d, &c); err != nil {
		return c, nil, err
	}
	before, err := d.Definition()
	if err != nil {
		return c, nil, err
	}
	if err := settleIdle(d, namespaceOr(o.Namespace), o.Name); err != nil {
		return c, nil, err
	}
	if seed := c.Runner.CloudInit; seed != nil && before.InstanceID != "" && !namesInstance(o.VirtualMachine) {
		seed.MetaData[instanceIDKey] = before.InstanceID // a map of this configuration's own
	}
	if err := checkUploads(g.canonical(o.VirtualMachine).Disks, before); err != nil {
		return c, nil, err
	}
	if len(c.Runner.Sources()) == 0 {
		return c, nil, nil
	}
	all, err := readSecrets(g.over(before.Given).Secrets, c.Runner.Namespace)
	if err != nil {
		return c, nil, err
	}
	if err := all.checkType(o.VirtualMachine.Spec.Provisioning); err != nil {
		return c, nil, err
	}
	used, err := all.content.fill(&c.Runner)
	return c, used, err
}

// namesInstance reports whether a manifest says which instance cloud-init sees.
func namesInstance(vm *spec.VirtualMachine) bool {
	return vm.Spec.CloudInit != nil && vm.Spec.CloudInit.MetaData[instanceIDKey] != ""
}

// decideDisks finds out which disks would be made, and what is to be remembered.
func (j *Job) decideDisks(vm *spec.VirtualMachine, options JobOptions) error {
	before, err := j.Directories.Definition()
	if err != nil {
		return err
	}
	known, err := j.Directories.known(before)
	if err != nil {
		return err
	}
	var fresh []string
	for _, name := range options.FreshDisks {
		own := diskName(vm, name)
		if own == "" {
			return fmt.Errorf("new disk %q: the machine has no disk of that name", name)
		}
		fresh = append(fresh, own)
	}
	if err := checkDisks(startDisks(&j.Config, hasContent), known, fresh); err != nil {
		return err
	}
	disks := startDisks(&j.Config, exists)
	j.FreshDisks = fresh
	j.Definition = Definition{Given: options.Given.canonical(vm).over(before.Given), Used: map[string]string{}, InstanceID: before.InstanceID, SSH: before.SSH}
	for _, d := range disks {
		j.Definition.Used[d.name] = d.path
		if d.made {
			j.NewDisks = append(j.NewDisks, NewDisk{Name: d.name, Path: d.path, Size: d.size, Image: d.image})
		}
	}
	return nil
}

// manifestText is the object as it was written. Items of a list are JSON, which is
// YAML too.
func manifestText(o *spec.Object) []byte {
	return slices.Concat(bytes.TrimRight(o.Raw, "\n"), []byte("\n"))
}

// Discard removes what the first start of a machine has left that did not come to
// execute its guest: manifest, definition, state, log, and the images that this start has
// made. Nothing is removed of a machine that was there before, that somebody else has started
// meanwhile, or that a deleted one of its name has left something of; discarded reports which
// it was. A machine that was created, and not started yet, is again one that was not started
// yet, with what it was given and its log. The error is [ErrBusy] if somebody else works with the machine by now.
func (j *Job) Discard() (discarded bool, err error) {
	if !j.first {
		return false, j.forgetStart()
	}
	m := Machine{Directories: j.Directories, Namespace: j.Config.Runner.Namespace, Name: j.Config.Runner.VM.Name}
	if kept, err := os.ReadFile(m.ManifestFile()); err == nil && !bytes.Equal(kept, j.Manifest) {
		return false, nil // somebody else has made one meanwhile
	}
	_, err = m.Delete(DeleteOptions{Disks: true})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err == nil, err
}

// readJob reads the job that the calling process wrote.
func readJob(r io.Reader) (*Job, error) {
	j := &Job{}
	if err := json.NewDecoder(r).Decode(j); err != nil {
		return nil, fmt.Errorf("read what to run: %w", err)
	}
	return j, nil
}

// Engine runs a machine of this host in this process. Its state and its manifest
// are kept in the machine's directory.
type Engine struct {
	*runner.Engine
	job     *Job
	keeper  *keeper
	config  string // what the machine follows
	running <-chan struct{}
}

// follow passes on new configurations until ctx ends.
func (e *Engine) follow(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-e.running:
	}
	f := runner.ConfigFollower{
		Path: e.config,
		// The engine reports what it refuses.
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

// neighbour is the NAMESPACE/NAME of the machine of a data directory beside this one's;
// empty if that is no machine of the same host.
func (j *Job) neighbour(dataDir string) string {
	name, err := filepath.Rel(filepath.Dir(filepath.Dir(j.Directories.Data)), dataDir)
	if err != nil || !filepath.IsLocal(name) || strings.Count(name, string(filepath.Separator)) != 1 {
		return ""
	}
	return filepath.ToSlash(name)
}

// begins is called before anything is started: whoever has started the machine since the
// job was prepared has left a state.
func (j *Job) begins() { j.first = j.first && !exists(j.Directories.StateFile()) }

// Engine makes the engine of a job. Nothing is started.
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

// Run is [runner.Engine.Run]; its error also says what could not be kept. The
// machine follows what [Host.Apply] tells it.
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
