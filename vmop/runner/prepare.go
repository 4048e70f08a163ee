package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.locked = true
	return nil
}

// lock locks a directory. Where an orphaned QEMU holds the lock, it is ended
// first; where what holds it is about to end, that is waited for.
func (e *Engine) lock(ctx context.Context, dir string) (*os.File, error) {
	for deadline := deadlineIn(orphanGrace); ; {
		f, err := Lock(dir)
		if !errors.Is(err, ErrLocked) {
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.locked = false
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
	rec.chooseAddressMap(&e.o.Config.Runner.VM)
	if rec.MachineType == "" {
		if err := e.takeOverType(&rec); err != nil {
			return none, err
		}
	}
	c := &e.o.Config
	facts := runnerconfig.Facts{
		DataDir: dirs.Data, RuntimeDir: dirs.Runtime,
		MachineType: rec.MachineType, AddressMap: rec.AddressMap, FirstDiskSlot: rec.FirstDiskSlot,
		MonitorFD: monitorFD,
		// The first of their processes, as the monitor is of QEMU's.
		TPMFD: monitorFD, ShareFD: monitorFD,
		Contained: len(e.o.Volumes) > 0,
	}
	if facts.UUID, err = e.keepUUID(c.Runner.VM.UUID); err != nil {
		return none, err
	}
	if facts.DisplayPassword, err = hasDisplayPassword(e.o.DisplaySecretDir); err != nil {
		return none, err
	}
	e.mu.Lock()
	e.ticketing = facts.DisplayPassword
	e.mu.Unlock()
	// Nothing is made for a machine that cannot start.
	if err := e.checkGiven(&c.Runner.VM); err != nil {
		return none, err
	}
	if facts.TLSDir, err = e.withoutAuthority(); err != nil {
		return none, err
	}
	if facts.Taps, err = e.openTaps(ctx); err != nil {
		return none, err
	}
	if facts.Drives, err = e.prepareDrives(c.Runner.VM.Drives, rec.Disks); err != nil {
		return none, err
	}
	// Formats are kept before anything may write to the images.
	if err := rec.write(dirs.Data); err != nil {
		return none, err
	}
	if k := c.Runner.VM.KernelBoot; k != nil {
		var kerr, ierr error
		facts.KernelFD, kerr = e.openGiven(k.Kernel)
		facts.InitrdFD, ierr = e.openGiven(k.Initrd)
		if err := errors.Join(kerr, ierr); err != nil {
			return none, fmt.Errorf("kernel: %w", err)
		}
	}
	kind := qemucmd.FirmwareKind(c.Runner.VM.Firmware)
	if err := e.chooseFirmware(kind, rec, &facts); err != nil {
		return none, err
	}
	facts.FirmwareVarsFD = e.handOver(nil) // they may have to be made first
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
	for _, f := range cmd.Files {
		if f.Purpose == qemucmd.FileFirmwareVars {
			if err := e.openVars(f.Path, facts.FirmwareVarsFD); err != nil {
				return none, fmt.Errorf("UEFI variables: %w", err)
			}
		}
		if f.OpenedAs != "" {
			e.opened.Store(f.OpenedAs, f.Path)
		}
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
		if err := e.writeSeed(m.UUID, m.Seed.File); err != nil {
			return none, err
		}
	}
	e.update(func(s *State) {
		s.UUID = m.UUID
		s.MachineType, s.AddressMap = cmd.MachineType, m.AddressMap
		s.Accelerator, s.Emulation = cmd.Accelerator, e.emulation(cmd.Accelerator)
		s.MaximumCPUs = m.CPU.Maximum
		s.MaximumRAM = m.Memory.Size
		s.Shares = c.Runner.VM.Shares // which nobody changes
		// What the machine begins with, as VM-Operator's runner reports it.
		s.CPUs, s.RAM = 1, m.Memory.Size
	})
	return cmd, context.Cause(ctx)
}

// emulation is why the machine has not the host's processors.
func (e *Engine) emulation(a qemucmd.Accelerator) Emulation {
	wish := qemucmd.Accelerator(e.o.Config.Runner.VM.Accelerator)
	switch {
	case a == qemucmd.AcceleratorKVM:
		return Emulation{}
	case wish != "" && wish != qemucmd.AcceleratorAuto:
		return Emulation{Reason: conditions.ReasonEmulationRequested, Message: "the configuration asks for software emulation"}
	case e.o.Emulation.Reason == "":
		return Emulation{Reason: conditions.ReasonEmulated}
	}
	return e.o.Emulation
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
func (e *Engine) checkGiven(vm *runnerconfig.VM) error {
	var errs []error
	check := func(path, what string) {
		if path == "" || isURL(path) {
			return
		}
		if err := e.checkImage(path); err != nil {
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
		case f.Purpose == qemucmd.FileShare:
			if err := checkShare(f.Path); err != nil {
				errs = append(errs, err)
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
	if _, err := os.Lstat(f.Path); err == nil { // they are never replaced
		found, err := e.find(f.Path)
		if err != nil {
			return err
		}
		return found.Close()
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

// openVars opens the UEFI variables for QEMU, as a descriptor that was promised. What
// is opened is looked at once more: it may be another file by now.
func (e *Engine) openVars(path string, fd int) error {
	found, err := e.find(path)
	if err != nil {
		return err
	}
	defer found.Close()
	if err := mustBeFile(found); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := reopen(found, os.O_RDWR)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	e.inherited[fd-monitorFD-1] = f
	if _, err := readVars(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
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
