package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func (h *Host) imageOf(o *spec.Object, disk string) (d heldDisk, own bool, err error) {
	name := diskName(o.VirtualMachine, disk)
	if name == "" {
		var names []string
		for _, d := range machineconfig.Disks(o.VirtualMachine) {
			if d.Name != "" {
				names = append(names, d.Name)
			}
		}
		return d, false, fmt.Errorf("the machine has no disk of that name; it has %s", strings.Join(names, ", "))
	}
	local, err := h.Local(o, Given{})
	if err != nil {
		return d, false, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return d, false, err
	}
	i := slices.IndexFunc(c.Runner.VM.Drives, func(d runnerconfig.Drive) bool { return d.Name == name })
	drive := c.Runner.VM.Drives[i]
	d, own = heldDisk{name: name, path: drive.Where(), size: int64(drive.Size)}, drive.File != ""
	if drive.Ephemeral() {
		return d, own, errEphemeral
	}
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return d, own, errNoImage
	case err != nil:
		return d, own, err
	case !info.Mode().IsRegular():
		return d, own, fmt.Errorf("%s is no file: enlarge it where it comes from", d.path)
	}
	return d, own, nil
}

// look returns the format of an image of a machine that does not run, from the machine's record if
// it has had it, and its size in the guest.
func (m *Machine) look(path string) (qemucmd.DiskFormat, int64, error) {
	known, err := runner.KnownImages(m.Data)
	if err != nil {
		return "", 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if known[path] == qemucmd.DiskFormatRaw { // whatever its guest has written to it
		return qemucmd.DiskFormatRaw, info.Size(), nil
	}
	header := make([]byte, min(info.Size(), imageinspect.HeaderSize))
	if _, err := io.ReadFull(f, header); err != nil {
		return "", 0, err
	}
	format, size, err := imageinspect.ProbeFormat(header, info.Size())
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("%s: %w", path, err)
	case format == imageinspect.FormatQcow2:
		return qemucmd.DiskFormatQCOW2, size, nil
	case known[path] != "":
		return "", 0, fmt.Errorf("%s was a %s image and is one no more", path, known[path])
	}
	return qemucmd.DiskFormatRaw, info.Size(), nil
}

var (
	errNoImage   = errors.New("it has no image yet: start the machine once, or say its size in the manifest")
	errEphemeral = errors.New("it is a new copy at each start: say its size in the manifest")
)
