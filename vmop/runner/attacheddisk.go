package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// attachedRecord is the file beside an image with its record, as machine.json has for the disks of
// a machine. It moves with the disk from one machine to the next.
const attachedRecord = ".vmop-export.json"

func (d *openedDisk) finder() *Engine { return &Engine{o: Options{Volumes: d.volumes}} }

// open opens the disk, and creates it if it has never existed.
func (d *openedDisk) open() (*os.File, runnerconfig.DriveFacts, error) {
	var facts runnerconfig.DriveFacts
	path := d.path
	found, err := d.finder().find(path)
	if errors.Is(err, fs.ErrNotExist) && d.size > 0 {
		if found, err = d.create(); err != nil {
			return nil, facts, err
		}
	}
	if err != nil {
		return nil, facts, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, facts, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		facts.Device = true
		if err := checkDevice(path, info); err != nil {
			return nil, facts, err
		}
		f, err := reopen(found, diskFlags(facts, false)|unix.O_EXCL)
		if errors.Is(err, unix.EBUSY) {
			err = errDeviceBusy
		}
		return f, facts, err
	default:
		return nil, facts, fmt.Errorf("it is neither a file nor a block device: %s", mode.Type())
	}
	now, err := lookAt(found)
	if err != nil {
		return nil, facts, err
	}
	before, recorded, err := d.record()
	if err != nil {
		return nil, facts, err
	}
	rec, note, err := before.next(now, recorded)
	if err != nil {
		return nil, facts, errors.New(strings.ReplaceAll(err.Error(), entryRemedy, "if that is right, remove "+attachedRecord+" beside it"))
	}
	if note != "" {
		d.message(LevelWarning, "the disk image %s %s", path, note)
	}
	if err := d.keep(rec); err != nil {
		return nil, facts, err
	}
	facts.Format, d.has = rec.Format, now.size
	if rec.Format == qemucmd.DiskFormatRaw {
		d.has = info.Size() // whatever its header says
	}
	f, err := reopen(found, diskFlags(facts, false))
	if err != nil {
		return nil, facts, err
	}
	// QEMU holds its own lock only while it serves a client. QEMU inherits this one with the file.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errDiskLocked
		}
		return nil, facts, errors.Join(err, f.Close())
	}
	return f, facts, nil
}

// The disk is another process' for now.
var (
	errDiskLocked = errors.New("another process has it, and its lock")
	errDeviceBusy = errors.New("it is in use: mounted, part of a volume of the host (LVM, RAID), or another process has it")
)

// whileBusy calls open until no other process has the disk, or for a while: the QEMU of a runner or
// an exporter that was killed needs a moment to end. tell is called once if it waits.
func whileBusy(ctx context.Context, tell func(error), open func() error) error {
	ctx, cancel := context.WithTimeout(ctx, orphanGrace)
	defer cancel()
	retry := time.NewTicker(lockInterval)
	defer retry.Stop()
	for told := false; ; told = true {
		err := open()
		if !errors.Is(err, errDiskLocked) && !errors.Is(err, errDeviceBusy) {
			return err
		}
		if !told {
			tell(err)
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (d *openedDisk) create() (*os.File, error) {
	if _, was, err := d.record(); err != nil {
		return nil, err
	} else if was {
		return nil, fmt.Errorf("it was there and is missing: put it back; if a new, empty disk is wanted, remove %s beside it", attachedRecord)
	}
	if _, err := createImage(d.path, d.size); err != nil {
		return nil, err
	}
	d.message(LevelInfo, "created the disk image %s of %s", d.path, runnerconfig.Bytes(d.size))
	return d.finder().find(d.path)
}

func (d *openedDisk) recordPath() string { return filepath.Join(filepath.Dir(d.path), attachedRecord) }

func (d *openedDisk) record() (rec diskRecord, recorded bool, err error) {
	f, err := d.finder().find(d.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, err
	}
	defer f.Close()
	if err := mustBeFile(f); err != nil {
		return rec, false, fmt.Errorf("%s: %w", d.recordPath(), err)
	}
	r, err := reopen(f, os.O_RDONLY)
	if err != nil {
		return rec, false, fmt.Errorf("%s: %w", d.recordPath(), err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&rec); err != nil {
		return rec, false, fmt.Errorf("%s: %w", d.recordPath(), err)
	}
	return rec, true, nil
}

func (d *openedDisk) keep(rec diskRecord) error {
	data, err := json.Marshal(rec)
	if err == nil {
		err = atomicfile.Replace(d.recordPath(), append(data, '\n'))
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(d.recordPath()))
	}
	if err != nil {
		return fmt.Errorf("record what the image is: %w", err)
	}
	return nil
}

func (d *openedDisk) note() {
	rec, recorded, err := d.record()
	if err != nil || !recorded || rec.Format != qemucmd.DiskFormatRaw {
		return
	}
	f, err := d.finder().find(d.path)
	if err != nil {
		return
	}
	now, err := lookAt(f)
	_ = f.Close() // it was only read
	if err == nil && rec.same(now) && rec.Header != now.header {
		rec.Header = now.header
		err = d.keep(rec)
	}
	if err != nil {
		d.message(LevelWarning, "%v", err)
	}
}

// diskNodes returns a disk's block nodes: below is its file or block device, node its content.
func diskNodes(set, below, node string, facts runnerconfig.DriveFacts) []qmp.BlockdevAdd {
	file := qmp.BlockdevAdd{Driver: "file", NodeName: below, Options: map[string]any{"filename": set, "locking": "on", "discard": "unmap"}}
	if facts.Device {
		file.Driver = "host_device"
		file.Options["cache"] = map[string]any{"direct": true}
		delete(file.Options, "locking")
	}
	content := qmp.BlockdevAdd{Driver: "raw", NodeName: node, Options: map[string]any{"file": below, "discard": "unmap"}}
	if facts.Format == qemucmd.DiskFormatQCOW2 {
		content.Driver = string(facts.Format)
		content.Options["backing"] = nil // the image was inspected, and has none
	}
	return []qmp.BlockdevAdd{file, content}
}
