package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

// localFlags say where a machine on this host has its things.
func localFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "disk", Usage: "`NAME=PATH`: use this image or block device as a disk; may be given several times"},
		dataDirFlag(),
		&cli.StringFlag{Name: "image-repository", Usage: "`DIR` of the CD images and kernels that the manifest names (default: images in the data directory)"},
		&cli.StringFlag{Name: "accel", Usage: "`ACCELERATOR` instead of the manifest's: auto, kvm or tcg"},
	}
}

// local is what reconcile must know about this host to run the machine.
func (p *program) local(c *cli.Context, o *spec.Object, d directories) (reconcile.Local, error) {
	l := reconcile.Local{
		DataDir: d.machine, RuntimeDir: d.runtime,
		ImageRepository:   filepath.Join(d.root, "images"),
		Disks:             map[string]string{},
		ExplicitSPICEPort: o.Written("spec.vm.display.spice.port"),
		ExplicitVNCPort:   o.Written("spec.vm.display.vnc.port"),
		Accelerator:       spec.Accelerator(c.String("accel")),
	}
	switch l.Accelerator {
	case "", spec.AcceleratorAuto, spec.AcceleratorKVM, spec.AcceleratorTCG:
	default:
		return l, usagef(c, "--accel %q: want auto, kvm or tcg", l.Accelerator)
	}
	if dir := c.String("image-repository"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return l, fmt.Errorf("image repository: %w", err)
		}
		l.ImageRepository = abs
	}
	for _, arg := range c.StringSlice("disk") {
		name, path, ok := strings.Cut(arg, "=")
		if !ok || name == "" || path == "" {
			return l, usagef(c, "--disk %q: want NAME=PATH", arg)
		}
		if _, twice := l.Disks[name]; twice {
			return l, usagef(c, "--disk %s is given twice", name)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return l, fmt.Errorf("disk %s: %w", name, err)
		}
		l.Disks[name] = abs
	}
	return l, nil
}
