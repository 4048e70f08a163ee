package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// CreateFromImage is [Host.Create] of a machine whose disk [SystemDisk] is a copy of an image,
// which is checked, and enlarged. If interrupted, it leaves no machine.
func (h *Host) CreateFromImage(ctx context.Context, o *spec.Object, g Given, image Image, options ImageOptions) (Machine, error) {
	if err := image.Check(); err != nil {
		return Machine{}, err
	}
	kind, err := image.source().Kind()
	if err != nil {
		return Machine{}, err
	}
	to, err := h.free(o.Namespace, o.Name)
	if err != nil {
		return Machine{}, err
	}
	if _, _, err := h.configuration(o, g); err != nil {
		return Machine{}, err
	}
	var held *os.File // in the cache
	if kind == imagesource.HTTP || kind == imagesource.Registry {
		if _, held, _, err = h.pull(ctx, image, options); err != nil {
			return Machine{}, fmt.Errorf("image %s: %w", image.source(), image.explain(err))
		}
		defer held.Close()
	}
	parent := filepath.Dir(to.Data)
	if err := makePrivate(parent); err != nil {
		return Machine{}, fmt.Errorf("directory of the machine: %w", err)
	}
	if err := removeAbandoned(parent, newMachinePrefix); err != nil {
		return Machine{}, err
	}
	tmp, err := os.MkdirTemp(parent, newMachinePrefix+o.Name+"-")
	if err != nil {
		return Machine{}, err
	}
	err = fillFromImage(ctx, tmp, o, g, image, held, options)
	if err == nil {
		err = moveNew(tmp, to.Data)
	}
	if err != nil {
		return Machine{}, errors.Join(fmt.Errorf("image %s: %w", image.source(), image.explain(err)), os.RemoveAll(tmp))
	}
	return h.Machine(o.Namespace, o.Name)
}

// newMachinePrefix is the prefix of the names of unfinished machines, each of which is locked.
const newMachinePrefix = ".new-"

func fillFromImage(ctx context.Context, dir string, o *spec.Object, g Given, image Image, held *os.File, options ImageOptions) (err error) {
	own, err := runner.Lock(dir) // so that it does not count as abandoned
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	disk := filepath.Join(dir, SystemDisk+".img")
	if err := image.fetch(ctx, held, disk, options); err != nil {
		return err
	}
	if err := prepareImage(ctx, disk, image.Size); err != nil {
		return err
	}
	if options.Fetched != nil {
		if o, err = options.Fetched(); err != nil {
			return err
		}
	}
	return errors.Join(Directories{Data: dir}.keep(o, g), atomicfile.SyncDir(dir))
}
