package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (e *Engine) prepareDrives(ctx context.Context, drives []runnerconfig.Drive, known map[string]diskRecord) ([]runnerconfig.DriveFacts, error) {
	out := make([]runnerconfig.DriveFacts, len(drives))
	var errs []error
	for i, d := range drives {
		facts, err := runnerconfig.DriveFacts{}, error(nil)
		if d.Type == runnerconfig.DriveCD {
			facts.FD, err = e.openGiven(d.File)
		} else {
			facts, err = e.prepareDisk(ctx, d, known)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.driveField(i), err))
		}
		out[i] = facts
	}
	return out, errors.Join(errs...)
}

func (e *Engine) prepareDisk(ctx context.Context, d runnerconfig.Drive, known map[string]diskRecord) (runnerconfig.DriveFacts, error) {
	var facts runnerconfig.DriveFacts
	path := d.Where()
	made := ""
	if d.File != "" && (d.Size > 0 || d.Image != nil) {
		var err error
		if made, err = e.createDisk(ctx, d, known); err != nil {
			return facts, err
		}
	}
	f, err := e.find(path)
	if err != nil {
		return facts, fmt.Errorf("disk: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return facts, fmt.Errorf("disk: %w", err)
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		return e.prepareDevice(ctx, d, f, info)
	default:
		return facts, fmt.Errorf("%s is neither a file nor a block device", path)
	}
	if d.Device != "" {
		return facts, fmt.Errorf("%s is a file, but is configured as a device", path)
	}
	return e.prepareImage(d, f, info.Size(), made, known)
}

func (e *Engine) prepareDevice(ctx context.Context, d runnerconfig.Drive, f *os.File, info fs.FileInfo) (runnerconfig.DriveFacts, error) {
	path, facts := d.Where(), runnerconfig.DriveFacts{Device: true}
	if d.File != "" {
		return facts, fmt.Errorf("%s is a block device, but is configured as a file", path)
	}
	if err := checkDevice(path, info); err != nil {
		return facts, fmt.Errorf("%s: %w", path, err)
	}
	device, err := e.openDevice(ctx, path, f, info, diskFlags(facts, d.ReadOnly))
	if err != nil {
		return facts, fmt.Errorf("block device %s: %w", path, err)
	}
	facts.FD = e.handOver(device)
	return facts, nil
}

// made is the source of which the image was just created as a copy, empty if it existed.
func (e *Engine) prepareImage(d runnerconfig.Drive, f *os.File, size int64, made string, known map[string]diskRecord) (runnerconfig.DriveFacts, error) {
	path, facts := d.Where(), runnerconfig.DriveFacts{}
	now, err := lookAt(f)
	if err != nil {
		return facts, fmt.Errorf("disk image %s: %w", path, err)
	}
	before, recorded := known[path]
	// The header of a file that no guest has written to can be trusted.
	kept := !d.Ephemeral() && !d.ReadOnly
	if !kept {
		before, recorded = diskRecord{}, false
	}
	rec, note, err := before.next(now, recorded)
	if err != nil {
		return facts, fmt.Errorf("disk image %s: %w", path, err)
	}
	if note != "" {
		e.message(LevelWarning, "the disk image %s %s", path, note)
	}
	rec.Name, rec.Image = d.Name, cmp.Or(made, before.Image)
	if im := d.Image; im != nil && rec.Image != "" && rec.Image != im.Source {
		e.message(LevelWarning, "the disk %s stays the copy of %s that it is: no disk is overwritten", d.Name, rec.Image)
	}
	if kept {
		known[path] = rec
	}
	facts.Format = rec.Format
	wanted := max(d.Size, d.GrowTo)
	if (d.Image != nil || d.GrowTo > 0) && facts.Format == qemucmd.DiskFormatQCOW2 && now.size < int64(wanted) {
		e.made.toGrow[d.Name] = int64(wanted)
	}
	if facts.Format == qemucmd.DiskFormatRaw && wanted > 0 && size < int64(wanted) {
		e.growDisk(f, size, wanted)
	}
	// QEMU gets the file that was inspected, even if its path now leads to another.
	image, err := reopen(f, diskFlags(facts, d.ReadOnly))
	if err != nil {
		return facts, fmt.Errorf("disk image %s: %w", path, err)
	}
	facts.FD = e.handOver(image)
	return facts, nil
}

// createDisk creates the image of a disk, unless it exists. A missing one that existed before is
// not created again: an empty disk in its place would look like lost data, and an installer might
// install to it.
//
// It returns the source of the image that the disk was created from, if it was.
func (e *Engine) createDisk(ctx context.Context, d runnerconfig.Drive, known map[string]diskRecord) (made string, err error) {
	path := d.Where()
	if d.Ephemeral() {
		return d.Image.Source, e.makeEphemeral(ctx, d, known)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("disk: %w", err)
	}
	if d.NewImage || slices.Contains(e.o.NewDisks, d.Name) {
		maps.DeleteFunc(known, func(other string, r diskRecord) bool { return other == path || r.Name == d.Name })
	}
	record := filepath.Join(e.o.Directories.Data, recordName)
	if _, was := known[path]; was {
		return "", fmt.Errorf("the disk image %s was there at an earlier start and is missing: put it back; if a new, empty disk is wanted, remove the entry %q from \"disks\" in %s", path, path, record)
	}
	for other, r := range known {
		if d.Name != "" && r.Name == d.Name {
			return "", fmt.Errorf("the disk %s has been %s so far, and would become the new, empty image %s: name its file again; if a new, empty disk is wanted, remove the entry %q from \"disks\" in %s", d.Name, other, path, other, record)
		}
	}
	if d.Image != nil {
		return d.Image.Source, e.makeImage(ctx, d)
	}
	created, err := createImage(path, int64(d.Size))
	if created {
		e.made.images = append(e.made.images, path)
		e.message(LevelInfo, "created the disk image %s of %s", path, d.Size)
	}
	return "", err
}

func (e *Engine) makeImage(ctx context.Context, d runnerconfig.Drive) error {
	if e.o.MakeImage == nil {
		return fmt.Errorf("disk %s: nobody here makes it of its image", d.Name)
	}
	tell := func(text string) {
		text = fmt.Sprintf("disk %s: %s", d.Name, text)
		e.update(func(s *State) {
			s.Message = text
			s.Conditions = []live.Condition{{Type: live.GuestExecuting, Status: live.False, Reason: live.ReasonMakingDisks, Message: text}}
		})
	}
	tell("making it of its image")
	err := e.o.MakeImage(ctx, d, tell)
	if err != nil {
		return fmt.Errorf("disk %s: %w", d.Name, err)
	}
	e.made.images = append(e.made.images, d.Where())
	e.message(LevelInfo, "made the disk %s of its image", d.Name)
	e.update(func(s *State) { s.Message, s.Conditions = preparing, nil })
	return nil
}

// growMade has QEMU enlarge the qcow2 disks that are smaller than configured, before the guest
// executes. If that fails, the guest starts with the disk as it is.
func (e *Engine) growMade(ctx context.Context, c *qmp.Client) {
	n := 0
	for _, d := range e.o.Config.Runner.VM.Drives {
		if d.Type == runnerconfig.DriveCD {
			continue
		}
		node := qemucmd.DiskNode(n)
		n++
		size, grow := e.made.toGrow[d.Name]
		if !grow {
			continue
		}
		size = (size + sector - 1) / sector * sector
		if _, err := qmp.Do(ctx, c, qmp.BlockResize{NodeName: node, Size: size}); err != nil {
			e.message(LevelWarning, "the disk %s keeps the size of its image: %v", d.Name, err)
		}
	}
}

const sector = 512

// makeEphemeral creates a disk, replacing what an earlier run left of it. A file that was another
// disk must not be removed.
func (e *Engine) makeEphemeral(ctx context.Context, d runnerconfig.Drive, known map[string]diskRecord) error {
	path := d.Where()
	if _, kept := known[path]; kept {
		return fmt.Errorf("the disk %s would be made anew at each start, as %s, which is a disk that was kept so far: give one of them another name", d.Name, path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disk: %w", err)
	}
	e.made.ephemeral = append(e.made.ephemeral, path)
	return e.makeImage(ctx, d)
}

func (e *Engine) removeEphemeral() {
	for _, path := range e.made.ephemeral {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.message(LevelWarning, "disk: %v", err)
		}
	}
	e.made.ephemeral = nil
}

// noteImages records the headers of the images at the end of a machine: its guest could write
// anything into them.
func (e *Engine) noteImages() error {
	dir := e.o.Directories.Data
	rec, err := readRecord(dir)
	if err != nil {
		return err
	}
	for _, d := range e.o.Config.Runner.VM.Drives {
		r, known := rec.Disks[d.Where()]
		if !known || r.Format != qemucmd.DiskFormatRaw {
			continue
		}
		f, err := e.find(d.Where())
		if err != nil {
			continue // it will be missing at the next start, too
		}
		now, err := lookAt(f)
		_ = f.Close() // it was only read
		if err == nil && r.same(now) {
			r.Header = now.header
			rec.Disks[d.Where()] = r
		}
	}
	return rec.write(dir)
}

// MadeImages returns the images of disks that this engine has created, without the ephemeral ones.
// Call it after [Engine.Run] has returned.
func (e *Engine) MadeImages() []string { return slices.Clone(e.made.images) }
