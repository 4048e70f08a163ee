package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/spec"
)

// prepare returns the job of a manifest, and prints what the user should know before it starts.
func (p *program) prepare(ctx context.Context, c *cli.Context, o *spec.Object) (*host.Job, error) {
	j, given, err := p.makeJob(ctx, c, o)
	if err != nil {
		return nil, err
	}
	p.tellDisks(j, given)
	for _, note := range slices.Concat(host.MemoryNotes(o.VirtualMachine), host.USBNotes(o.VirtualMachine), j.DisplayNotes()) {
		p.note("%s", note)
	}
	if j.Config.Runner.VM.Accelerator == string(qemucmd.AcceleratorAuto) && !j.Host.KVM {
		for _, note := range j.Notes {
			if reason, ok := strings.CutPrefix(note, "KVM: "); ok {
				p.note("Software emulation is used, which is slow, because there is no KVM: %s", reason)
			}
		}
	}
	return j, nil
}

// makeJob returns the job of a manifest and the flags, and prints nothing.
func (p *program) makeJob(ctx context.Context, c *cli.Context, o *spec.Object) (*host.Job, host.Given, error) {
	h, err := p.host(c)
	if err != nil {
		return nil, host.Given{}, err
	}
	given, err := p.givenTo(c, h, o)
	if err != nil {
		return nil, given, err
	}
	g := p.begin("asking QEMU what this host offers")
	j, err := h.Prepare(ctx, o, host.JobOptions{Given: given, FreshDisks: c.StringSlice("new-disk"), Probe: p.probeOptions(), Version: version(),
		Image: func(source string) host.ImageOptions {
			g.set("looking for " + source)
			return host.ImageOptions{
				Progress: func(at imagesource.Progress) { g.set(imageProgress(source, at)) },
				Waiting:  func(who string) { g.set(fmt.Sprintf("waiting for %s, which fetches %s", who, source)) },
			}
		},
	})
	g.end()
	if err != nil && ctx.Err() != nil {
		return nil, given, fmt.Errorf("%s: the start was interrupted", fullName(o.Namespace, o.Name))
	}
	if err != nil {
		return nil, given, p.told(o, wayOut(err))
	}
	return j, given, nil
}

func wayOut(err error) error {
	var empty *host.EmptyDiskError
	if !errors.As(err, &empty) {
		return err
	}
	if empty.Known == empty.Path {
		return fmt.Errorf("%w: put it back, name another one with --disk %s, or say --new-disk %s", err, shellwords.Quote(empty.Disk+"=PATH"), empty.Disk)
	}
	return fmt.Errorf("%w: name it with --disk %s, or say --new-disk %s for %s", err, shellwords.Quote(empty.Disk+"="+empty.Known), empty.Disk, map[bool]string{true: "an empty one", false: "a new copy"}[empty.Image == ""])
}

func (p *program) tellDisks(j *host.Job, given host.Given) {
	for _, name := range slices.Sorted(maps.Keys(j.Definition.Used)) {
		path := j.Definition.Used[name]
		if before := j.Definition.Disks[name]; before == path && !slices.Contains(slices.Collect(maps.Values(given.Disks)), path) {
			p.note("Disk %s is %s, as before.", name, path)
		}
	}
	for _, d := range j.NewDisks {
		if d.Ephemeral {
			p.note("Disk %s is a new copy of %s, and gone when the machine stops", d.Name, d.Image)
			continue
		}
		if d.Image != "" {
			p.note("Disk %s is a copy of %s: %s (%s)", d.Name, d.Image, d.Path, textout.Size(d.Size))
			continue
		}
		p.note("Disk %s is new and empty: %s (%s)", d.Name, d.Path, textout.Size(d.Size))
	}
}
