package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// localFlags describe the environment of a machine on this host.
func localFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "disk", Usage: "`NAME=PATH`: use this image or block device as a disk; may be given several times. It is remembered; NAME= is the machine's own image again"},
		&cli.StringSliceFlag{Name: "new-disk", Usage: "`NAME` of a disk that may be a new, empty image although the machine has had another one"},
		&cli.StringSliceFlag{Name: "secret", Usage: "`FILE` with manifests of Secrets that the machine refers to, beside those of the manifest's file; may be given several times. It is remembered, and read at each start"},
		&cli.StringSliceFlag{Name: "share", Usage: "`DIR[:TAG][:ro]`: a folder for the guest to mount (by virtiofs), at /mnt/TAG if the manifest has cloudInit; may be given several times. It is remembered; :TAG takes it away. TAG is the name of the folder by default, or that of a claim that the manifest shares"},
		dataDirFlag(),
		&cli.StringFlag{Name: "image-repository", Usage: "`DIR` of the CD images and kernels that the manifest names (default: images in the data directory)"},
		&cli.StringFlag{Name: "accel", Usage: "`ACCELERATOR` instead of the manifest's: auto, kvm or tcg"},
	}
}

// keptFlags are those of the localFlags that are stored with a machine.
var keptFlags = []string{"disk", "secret", "share", "image-repository", "accel"}

func (p *program) given(c *cli.Context) (host.Given, error) {
	g := host.Given{Disks: map[string]string{}, Accelerator: spec.Accelerator(c.String("accel"))}
	switch g.Accelerator {
	case "", spec.AcceleratorAuto, spec.AcceleratorKVM, spec.AcceleratorTCG:
	default:
		return g, usagef(c, "--accel %q: want auto, kvm or tcg", g.Accelerator)
	}
	if dir := c.String("image-repository"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return g, fmt.Errorf("image repository: %w", err)
		}
		g.ImageRepository = abs
	}
	for _, file := range c.StringSlice("secret") {
		abs, err := filepath.Abs(file)
		if err != nil {
			return g, fmt.Errorf("secret: %w", err)
		}
		g.Secrets = append(g.Secrets, abs)
	}
	for _, arg := range c.StringSlice("disk") {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return g, usagef(c, "--disk %q: want NAME=PATH", arg)
		}
		if _, twice := g.Disks[name]; twice {
			return g, usagef(c, "--disk %s is given twice", name)
		}
		if path != "" {
			abs, err := filepath.Abs(path)
			if err != nil {
				return g, fmt.Errorf("disk %s: %w", name, err)
			}
			path = abs
		}
		g.Disks[name] = path
	}
	tags := map[string]bool{}
	for _, arg := range c.StringSlice("share") {
		s, err := parseShare(arg)
		if err != nil {
			return g, usagef(c, "--share %v", err)
		}
		if tags[s.Tag] {
			return g, usagef(c, "--share %q: the tag %s is given twice", arg, s.Tag)
		}
		tags[s.Tag] = true
		g.Shares = append(g.Shares, s)
	}
	return g, nil
}

func (p *program) givenTo(c *cli.Context, h *host.Host, o *spec.Object) (host.Given, error) {
	g, err := p.given(c)
	if err != nil {
		return g, err
	}
	d, err := h.Directories(o.Namespace, o.Name)
	if err != nil || o.File == d.ManifestFile() { // the stored manifest, whose origin is already known
		return g, err
	}
	if g.ManifestDir, err = filepath.Abs(filepath.Dir(o.File)); err != nil {
		return g, err
	}
	for _, file := range host.SecretFiles(c.Args().Slice(), o) {
		abs, err := filepath.Abs(file)
		if err != nil {
			return g, fmt.Errorf("secret: %w", err)
		}
		if !slices.Contains(g.Secrets, abs) {
			g.Secrets = append(g.Secrets, abs)
		}
	}
	return g, nil
}

// parseShare parses DIR[:TAG][:ro] and :TAG. The default tag is the name of the folder, as far as
// that is valid.
func parseShare(arg string) (machineconfig.LocalShare, error) {
	rest, readOnly := strings.CutSuffix(arg, ":ro")
	s := machineconfig.LocalShare{Dir: rest, ReadOnly: readOnly}
	if i := strings.LastIndex(rest, ":"); i >= 0 {
		s.Dir, s.Tag = rest[:i], rest[i+1:]
	}
	if s.Dir != "" {
		abs, err := filepath.Abs(s.Dir)
		if err != nil {
			return s, err
		}
		if info, err := os.Stat(abs); err != nil {
			return s, err
		} else if !info.IsDir() {
			return s, fmt.Errorf("%s: it is no folder", abs)
		}
		if s.Dir = abs; s.Tag == "" {
			s.Tag = filepath.Base(abs)
		}
	}
	if err := limits.ShareTag(s.Tag); err != nil {
		return s, fmt.Errorf("%q: want DIR[:TAG][:ro], and the tag %q %w", arg, s.Tag, err)
	}
	return s, nil
}
