package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

// localFlags say where a machine on this host has its things.
func localFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "disk", Usage: "`NAME=PATH`: use this image or block device as a disk; may be given several times. It is remembered; NAME= is the machine's own image again"},
		&cli.StringSliceFlag{Name: "new-disk", Usage: "`NAME` of a disk that may be a new, empty image although the machine has had another one"},
		&cli.StringSliceFlag{Name: "secret", Usage: "`FILE` with manifests of Secrets that the machine refers to; may be given several times. It is remembered, and read at each start"},
		dataDirFlag(),
		&cli.StringFlag{Name: "image-repository", Usage: "`DIR` of the CD images and kernels that the manifest names (default: images in the data directory)"},
		&cli.StringFlag{Name: "accel", Usage: "`ACCELERATOR` instead of the manifest's: auto, kvm or tcg"},
	}
}

// given is what the localFlags say.
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
	return g, nil
}
