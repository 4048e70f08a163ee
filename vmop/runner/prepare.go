package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// lockAll locks the machine's directories.
func (e *Engine) lockAll(ctx context.Context) error {
	for _, dir := range []string{e.o.Directories.Data, e.o.Directories.Runtime} {
		f, err := e.lock(ctx, dir)
		if err != nil {
			return err
		}
		e.locks = append(e.locks, f)
	}
	return nil
}

// lock locks a directory. Where an orphaned QEMU holds the lock, it is ended
// first; where what holds it is about to end, that is waited for.
func (e *Engine) lock(ctx context.Context, dir string) (*os.File, error) {
	for deadline := deadlineIn(orphanGrace); ; {
		f, err := lockDir(dir)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		ended, err := e.endOrphan(ctx, dir)
		if err != nil {
			return nil, err
		}
		if ended {
			deadline = deadlineIn(orphanGrace)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s: %w, by a process that this user cannot see", dir, ErrRunning)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockInterval):
		}
	}
}

func (e *Engine) unlock() error {
	var errs []error
	for _, f := range e.locks {
		errs = append(errs, f.Close())
	}
	e.locks = nil
	return errors.Join(errs...)
}

// prepare makes everything that QEMU needs and decides its command line.
func (e *Engine) prepare(ctx context.Context) (qemucmd.Command, error) {
	var none qemucmd.Command
	dirs := e.o.Directories
	rec, err := readRecord(dirs.Data)
	if err != nil {
		return none, err
	}
	if rec.MachineType == "" {
		if err := e.takeOverType(&rec); err != nil {
			return none, err
		}
	}
	c := &e.o.Config
	facts := runnerconfig.Facts{
		DataDir: dirs.Data, RuntimeDir: dirs.Runtime,
		MachineType: rec.MachineType,
		MonitorFD:   monitorFD,
		TPMFD:       monitorFD, // the first of its process, as the monitor is of QEMU's
	}
	if facts.UUID = c.Runner.VM.UUID; facts.UUID == "" {
		if facts.UUID, err = keepUUID(dirs.Data); err != nil {
			return none, err
		}
	}
	if facts.DisplayPassword, err = hasDisplayPassword(e.o.DisplaySecretDir); err != nil {
		return none, err
	}
	e.mu.Lock()
	e.ticketing = facts.DisplayPassword
	e.mu.Unlock()
	// Nothing is made for a machine that cannot start.
	if err := checkGiven(&c.Runner.VM); err != nil {
		return none, err
	}
	if facts.Drives, err = e.prepareDrives(c.Runner.VM.Drives, rec.Disks); err != nil {
		return none, err
	}
	// Formats are kept before anything may write to the images.
	if err := rec.write(dirs.Data); err != nil {
		return none, err
	}
	kind := qemucmd.FirmwareKind(c.Runner.VM.Firmware)
	if err := e.chooseFirmware(kind, rec, &facts); err != nil {
		return none, err
	}
	m, err := runnerconfig.Machine(c, facts)
	if err != nil {
		return none, err
	}
	cmd, err := e.build(m)
	if err != nil {
		return none, err
	}
	for _, w := range cmd.Warnings {
		e.message(LevelWarning, "%s", w)
	}
	if err := e.makeFiles(cmd, isSecure(kind)); err != nil {
		return none, err
	}
	if rec.MachineType != "" && rec.MachineType != cmd.MachineType {
		e.message(LevelWarning, "the machine type changes from %s to %s, as vm.machineType says: the guest sees other hardware", rec.MachineType, cmd.MachineType)
	}
	rec.MachineType = cmd.MachineType
	for _, f := range cmd.Files {
		if f.Purpose == qemucmd.FileFirmwareCode {
			rec.Firmware[kind] = firmwareRecord{Code: f.Path, Vars: filepath.Base(m.Firmware.VarsPath)}
		}
	}
	if err := rec.write(dirs.Data); err != nil {
		return none, err
	}
	if m.Seed != nil {
		if err := writeSeed(c.Runner.CloudInit, m.Seed.File); err != nil {
			return none, err
		}
	}
	e.update(func(s *State) {
		s.UUID = m.UUID
		s.MachineType = cmd.MachineType
		s.Accelerator = cmd.Accelerator
		s.MaximumCPUs = m.CPU.Maximum
		s.MaximumRAM = m.Memory.Size
	})
	return cmd, context.Cause(ctx)
}

// takeOverType lets a machine that ran under VM-Operator keep its machine type,
// where this QEMU has it.
func (e *Engine) takeOverType(rec *record) error {
	was, err := takenOverType(e.o.Directories.Data)
	if err != nil || was == "" {
		return err
	}
	if _, err := qemucmd.ChooseMachineType(was, "", e.o.Host.MachineTypes); err != nil {
		e.message(LevelWarning, "the machine had the type %s under VM-Operator, which this QEMU does not offer: the guest sees other hardware", was)
		return nil
	}
	rec.MachineType = was
	return nil
}

func (e *Engine) build(m qemucmd.Machine) (qemucmd.Command, error) {
	if e.o.Template != "" {
		return qemucmd.BuildTemplate(m, e.o.Host, e.o.Template)
	}
	return qemucmd.Build(m, e.o.Host)
}

// checkGiven looks for the files that only somebody else can provide.
func checkGiven(vm *runnerconfig.VM) error {
	var errs []error
	check := func(path, what string) {
		if path == "" || strings.Contains(path, "://") {
			return
		}
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for i, d := range vm.Drives {
		if d.Type == runnerconfig.DriveCD {
			check(d.File, fmt.Sprintf("vm.drives[%d]: cd", i))
		} else if d.Size == 0 {
			check(d.Where(), fmt.Sprintf("vm.drives[%d]: disk", i))
		}
	}
	if k := vm.KernelBoot; k != nil {
		check(k.Kernel, "kernel")
		check(k.Initrd, "initrd")
	}
	return errors.Join(errs...)
}

// prepareDrives makes missing images and finds out what is behind each drive.
func (e *Engine) prepareDrives(drives []runnerconfig.Drive, known map[string]diskRecord) ([]runnerconfig.DriveFacts, error) {
	out := make([]runnerconfig.DriveFacts, len(drives))
	var errs []error
	for i, d := range drives {
		if d.Type == runnerconfig.DriveCD {
			continue // a URL is QEMU's to open
		}
		facts, err := e.prepareDisk(d, known)
		if err != nil {
			errs = append(errs, fmt.Errorf("vm.drives[%d]: %w", i, err))
		}
		out[i] = facts
	}
	return out, errors.Join(errs...)
}

func (e *Engine) prepareDisk(d runnerconfig.Drive, known map[string]diskRecord) (runnerconfig.DriveFacts, error) {
	var facts runnerconfig.DriveFacts
	path := d.Where()
	if d.File != "" && d.Size > 0 {
		created, err := createImage(path, int64(d.Size))
		if err != nil {
			return facts, err
		}
		if created {
			delete(known, path)
			e.message(LevelInfo, "created the disk image %s of %s", path, d.Size)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return facts, fmt.Errorf("disk: %w", err)
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		if d.File != "" {
			return facts, fmt.Errorf("%s is a block device, but is configured as a file", path)
		}
		facts.Device = true
		if err := checkDevice(path, info); err != nil {
			return facts, fmt.Errorf("%s: %w", path, err)
		}
		return facts, nil
	default:
		return facts, fmt.Errorf("%s is neither a file nor a block device: %s", path, mode.Type())
	}
	if d.Device != "" {
		return facts, fmt.Errorf("%s is a file, but is configured as a device", path)
	}
	if facts.Format, err = decideFormat(path, info, known); err != nil {
		return facts, fmt.Errorf("disk image %s: %w", path, err)
	}
	if facts.Format == qemucmd.DiskFormatRaw && d.Size > 0 && info.Size() < int64(d.Size) {
		e.message(LevelWarning, "the disk image %s has %s, less than the %s asked for: it is left as it is; grow it with qemu-img resize", path, runnerconfig.Bytes(info.Size()), d.Size)
	}
	return facts, nil
}

// decideFormat says whether an image is raw or qcow2, and records it. What was
// decided once holds for the same file, whose content is the guest's since then.
// Another file at the same path that looks like another format is an error:
// somebody converted the image, or put back a copy that a guest wrote into, and
// only they can know.
func decideFormat(path string, info os.FileInfo, known map[string]diskRecord) (qemucmd.DiskFormat, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("its inode is not known")
	}
	before, recorded := known[path]
	if recorded && before.Inode == stat.Ino {
		return before.Format, nil
	}
	format, err := probeFormat(path, info.Size())
	if err != nil {
		return "", err
	}
	if recorded && format != before.Format {
		return "", fmt.Errorf("was a %s image and was replaced by a file that looks like %s; if that is right, remove its entry from %s in the machine's data directory", before.Format, format, recordName)
	}
	known[path] = diskRecord{Format: format, Inode: stat.Ino}
	return format, nil
}

func probeFormat(path string, size int64) (qemucmd.DiskFormat, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	header := make([]byte, min(size, imageinspect.HeaderSize))
	_, err = io.ReadFull(f, header)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	format, _, err := imageinspect.ProbeFormat(header, size)
	switch {
	case format == imageinspect.FormatISO9660:
		return qemucmd.DiskFormatRaw, nil // a hybrid image is a disk as well
	case err != nil:
		return "", err
	case format == imageinspect.FormatQcow2:
		return qemucmd.DiskFormatQCOW2, nil
	}
	return qemucmd.DiskFormatRaw, nil
}

// makeFiles copies what is missing and checks that the rest is there.
func (e *Engine) makeFiles(cmd qemucmd.Command, secure bool) error {
	var errs []error
	code := ""
	for _, f := range cmd.Files {
		switch {
		case f.Purpose == qemucmd.FileSeed: // made later
		case f.CopyFrom != "":
			if err := e.makeVars(f, code, secure); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.Purpose, err))
			}
		default:
			if f.Purpose == qemucmd.FileFirmwareCode {
				code = f.Path
			}
			if _, err := os.Stat(f.Path); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.Purpose, err))
			}
		}
	}
	return errors.Join(errs...)
}

// makeVars copies UEFI variables from a template that belongs to the code.
func (e *Engine) makeVars(f qemucmd.File, code string, secure bool) error {
	if _, err := os.Lstat(f.Path); err == nil {
		return nil // they are never replaced
	}
	if err := checkTemplate(f.CopyFrom, code, secure); err != nil {
		return err
	}
	created, err := copyFile(f.CopyFrom, f.Path)
	if created {
		e.message(LevelInfo, "created %s from %s", f.Path, f.CopyFrom)
	}
	return err
}

func writeSeed(c *runnerconfig.CloudInit, path string) error {
	in := cloudinit.Input{MetaData: map[string]string{}, UserData: c.UserData, NetworkConfig: c.NetworkConfig}
	for k, v := range c.MetaData {
		in.MetaData[k] = v
	}
	docs, err := cloudinit.Render(in)
	if err != nil {
		return fmt.Errorf("cloud-init: %w", err)
	}
	image, err := cloudinit.Image(docs)
	if err != nil {
		return fmt.Errorf("cloud-init image: %w", err)
	}
	if err := writeFile(path, image); err != nil {
		return fmt.Errorf("cloud-init image: %w", err)
	}
	return nil
}

// endOrphan ends a QEMU whose runner is gone, with its helpers, and says whether
// there was one. It fails with [ErrRunning] if a runner lives. The QEMU in a
// runtime directory that is not in the data directory is another machine's, and
// is left alone.
func (e *Engine) endOrphan(ctx context.Context, dir string) (ended bool, err error) {
	holders, err := allHolders(dir)
	if err != nil {
		return false, err
	}
	for _, h := range holders {
		if !h.IsQEMU() && !h.isHelper() {
			return false, fmt.Errorf("%s: %w (process %d, %s)", dir, ErrRunning, h.PID, h.Executable)
		}
		if dir != e.o.Directories.Data {
			return false, fmt.Errorf("%s: %w: it is the runtime directory of the QEMU of another data directory (process %d)", dir, ErrRunning, h.PID)
		}
	}
	for _, helpers := range []bool{false, true} { // which end when their QEMU has
		for _, h := range holders {
			if h.isHelper() != helpers {
				continue
			}
			e.message(LevelWarning, "found %s (process %d) without its runner: ending it", h.what(), h.PID)
			if err := endHolder(ctx, h.PID, dir, orphanGrace); err != nil {
				return false, fmt.Errorf("end the orphaned %s: %w", h.what(), err)
			}
		}
	}
	return len(holders) > 0, nil
}
