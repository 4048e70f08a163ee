package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Prepare returns the job of a manifest's machine, as [Host.Create] takes it. It creates the
// machine's directory, and changes nothing else of the machine. Images for disks that the start
// creates are fetched into the cache. The error has a machineconfig.Error for each thing that this
// host lacks, or a [*GivenError] for a missing file such as a kernel or a disk; it is an
// [*EmptyDiskError] if the machine would get an empty disk in place of one that it has had.
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
