package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrShrink is the error when a disk would become smaller.
var ErrShrink = errors.New("no disk is made smaller: what is at its end would be lost")

// ResizedDisk is the result of resizing a disk.
type ResizedDisk struct {
	// Name is the disk's, and Path its image's.
	Name, Path string
	// Had and Has are the sizes in the guest before and after, in bytes.
	Had, Has int64
	// Waiting is why a running machine does not have all of it yet; empty if it has.
	Waiting string
}

const sector = 512

// ResizeDisk enlarges a disk of a machine, also while the machine runs, whose guest is notified. If
// the machine creates the image, its manifest gets the new size. Any image that is a file can grow,
// raw or qcow2; one that is not in use is enlarged at once. The error is [ErrShrink] for a smaller
// size.
func (h *Host) ResizeDisk(ctx context.Context, m Machine, disk string, size int64) (ResizedDisk, error) {
	r, err := h.resizeDisk(ctx, m, disk, size)
	if err != nil {
		return r, fmt.Errorf("resize disk %q of %s: %w", disk, m.FullName(), err)
	}
	return r, nil
}

func (h *Host) resizeDisk(ctx context.Context, m Machine, disk string, size int64) (ResizedDisk, error) {
	var r ResizedDisk
	release, err := m.hold(ctx, "resized")
	if err != nil {
		return r, err
	}
	defer release()
	o, err := m.Object()
	if err != nil {
		return r, err
	}
	d, own, err := h.imageOf(&o, disk)
	if err != nil {
		return r, err
	}
	r.Name, r.Path = d.name, d.path
	size = (size + sector - 1) / sector * sector
	if r.Had, err = m.sizeOf(ctx, d); err != nil {
		return r, err
	}
	r.Has = r.Had
	if size < r.Had {
		return r, fmt.Errorf("it has %s: %w", sizeText(r.Had), ErrShrink)
	}
	if own {
		if o, err = resizedManifest(&o, d.name, size); err != nil {
			return r, err
		}
	}
	switch {
	case !m.Running():
		if err := m.growFile(ctx, d, size); err != nil {
			return r, err
		}
		if own {
			err = m.keep(&o, Given{})
		}
	case own:
		var done Applied
		done, err = h.Apply(ctx, m, &o, Given{})
		for _, c := range done.Waiting {
			if c.Type == live.RestartRequired || c.Type == runner.ConfigurationAccepted {
				r.Waiting = c.Message
			}
		}
	default:
		err = m.growLive(ctx, d, size)
	}
	if err != nil {
		return r, err
	}
	r.Has, err = m.sizeOf(ctx, d)
	if r.Has >= size {
		r.Waiting = "" // about something else
	}
	return r, err
}

func (m *Machine) sizeOf(ctx context.Context, d heldDisk) (size int64, err error) {
	if m.Running() {
		err := m.monitor(ctx, func(c *qmp.Client) error {
			found, err := findIn(ctx, c, []heldDisk{d})
			if err == nil {
				size = found[0].size
			}
			return err
		})
		return size, err
	}
	_, size, err = m.look(d.path)
	return size, err
}

func (m *Machine) growFile(ctx context.Context, d heldDisk, size int64) error {
	if err := checkUnused(d.path); err != nil {
		return err
	}
	format, has, err := m.look(d.path)
	if err != nil || has >= size {
		return err
	}
	if format == qemucmd.DiskFormatQCOW2 {
		return growQCOW2(ctx, d.path, size)
	}
	return filecopy.GrowFile(d.path, size)
}

func (m *Machine) growLive(ctx context.Context, d heldDisk, size int64) error {
	return m.monitor(ctx, func(c *qmp.Client) error {
		found, err := findIn(ctx, c, []heldDisk{d})
		if err != nil || found[0].size >= size {
			return err
		}
		_, err = qmp.Do(ctx, c, qmp.BlockResize{NodeName: found[0].node, Size: size})
		return err
	})
}

// resizedManifest never reduces the size.
func resizedManifest(o *spec.Object, disk string, size int64) (spec.Object, error) {
	file := FullName(o.Namespace, o.Name)
	written, err := only(spec.Load(file, o.Raw, spec.Options{}))
	if err != nil {
		return spec.Object{}, err
	}
	want := written.VirtualMachine.DeepCopy()
	disks := machineconfig.Disks(o.VirtualMachine) // the names need the defaults
	i := disks[slices.IndexFunc(disks, func(d machineconfig.Disk) bool { return d.Name == disk })].Index
	quantity := resource.NewQuantity(size, resource.BinarySI)
	var had resource.Quantity
	way, key := []string{"volumeClaimTemplate", "spec", "resources", "requests"}, string(corev1.ResourceStorage)
	switch d := &want.Spec.VM.Disks[i]; {
	case d.Image != nil:
		had, way, key = *d.Image.Size, []string{"image"}, "size"
	case d.ContainerDisk != nil:
		had, way, key = *d.ContainerDisk.Size, []string{"containerDisk"}, "size"
	default:
		had = d.VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if had.Cmp(*quantity) >= 0 {
		if had.Cmp(*quantity) > 0 {
			return spec.Object{}, fmt.Errorf("its manifest says %s: %w", had.String(), ErrShrink)
		}
		return *o, nil
	}
	switch d := &want.Spec.VM.Disks[i]; {
	case d.Image != nil:
		d.Image.Size = quantity
	case d.ContainerDisk != nil:
		d.ContainerDisk.Size = quantity
	default:
		d.VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = *quantity
	}
	var doc yaml.Node
	err = yaml.Unmarshal(o.Raw, &doc)
	if err == nil && len(doc.Content) == 1 {
		list := child(child(child(doc.Content[0], "spec"), "vm"), "disks")
		if list != nil && i < len(list.Content) {
			at := list.Content[i]
			for _, name := range way {
				at = child(at, name)
			}
			setText(at, key, quantity.String())
		}
	}
	text, err := encodeManifest(&doc)
	if err != nil || !says(text, want) {
		// A manifest in an unusual form loses its comments.
		if text, err = spec.Marshal(want); err != nil {
			return spec.Object{}, err
		}
	}
	return only(spec.Load(file, text, spec.Options{Default: true, Validate: true}))
}

func sizeText(n int64) string {
	return strconv.FormatInt(n, 10) + " bytes (" + mebibytes(uint64(n)) + ")"
}

// Disk is a disk of a machine other than a CD.
type Disk struct {
	Name string `json:"name"`
	// Path is its image or block device; Own reports whether it is an image that the machine
	// creates in its own directory.
	Path string `json:"path"`
	Own  bool   `json:"own"`
	// Format is the image's, raw or qcow2, if known.
	Format qemucmd.DiskFormat `json:"format,omitempty"`
	// Size is its size in the guest and Allocated the space it takes, in bytes. They are missing
	// for block devices. Before the image exists, Size is the manifest's.
	Size      int64 `json:"size,omitempty"`
	Allocated int64 `json:"allocated,omitempty"`
	// Problem is why the image cannot be described.
	Problem string `json:"problem,omitempty"`
}

// Disks lists a machine's disks in the order of its manifest.
func (h *Host) Disks(ctx context.Context, m Machine) ([]Disk, error) {
	o, err := m.Object()
	if err != nil {
		return nil, err
	}
	out := []Disk{}
	for _, d := range machineconfig.Disks(o.VirtualMachine) {
		if d.IsCD() {
			continue
		}
		at, own, err := h.imageOf(&o, d.Name)
		disk := Disk{Name: d.Name, Path: at.path, Own: own}
		if err == nil {
			disk.Size, err = m.sizeOf(ctx, at)
		}
		if err == nil {
			disk.Allocated, err = allocated(at.path)
		}
		seen := false
		if known, kerr := runner.KnownImages(m.Data); kerr == nil {
			disk.Format, seen = known[at.path]
		}
		switch {
		case errors.Is(err, errNoImage) && own && !seen:
			disk.Size, disk.Problem = at.size, "it has no image yet: the first start makes it"
		case errors.Is(err, errNoImage):
			disk.Problem = fmt.Sprintf("its image is missing: there is no %s", at.path)
		case errors.Is(err, errEphemeral):
			disk.Size, disk.Problem = at.size, "it is a new copy at each start"
		case err != nil:
			disk.Problem = err.Error()
		}
		out = append(out, disk)
	}
	return out, nil
}
