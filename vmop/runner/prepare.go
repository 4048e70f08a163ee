package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (e *Engine) prepare(ctx context.Context) (qemucmd.Command, error) {
	var none qemucmd.Command
	if err := e.mergeOverlays(ctx); err != nil {
		return none, err
	}
	rec, err := e.readRecord()
	if err != nil {
		return none, err
	}
	facts, err := e.facts(ctx, &rec)
	if err != nil {
		return none, err
	}
	kind := qemucmd.FirmwareKind(e.o.Config.Runner.VM.Firmware)
	if err := e.chooseFirmware(kind, rec, &facts); err != nil {
		return none, err
	}
	facts.FirmwareVarsFD = e.handOver(nil) // they may have to be created first
	m, err := runnerconfig.Machine(&e.o.Config, facts)
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
	if err := e.openFiles(cmd, facts.FirmwareVarsFD); err != nil {
		return none, err
	}
	if err := e.keep(&rec, kind, m, cmd); err != nil {
		return none, err
	}
	if m.Seed != nil {
		if err := e.writeSeed(m.UUID, m.Seed.File); err != nil {
			return none, err
		}
	}
	if m.AnswerCD != nil {
		if err := e.writeAnswers(m.AnswerCD.File); err != nil {
			return none, err
		}
	}
	e.update(func(s *State) {
		s.UUID = m.UUID
		s.MachineType, s.AddressMap = cmd.MachineType, m.AddressMap
		s.Accelerator, s.Emulation = cmd.Accelerator, e.emulation(cmd.Accelerator)
		s.MaximumCPUs = m.CPU.Maximum
		s.MaximumRAM = m.Memory.Size
		s.Shares = e.o.Config.Runner.VM.Shares // these never change
		// The initial values, as VM-Operator's runner reports them.
		s.CPUs, s.RAM = 1, m.Memory.Size
	})
	return cmd, context.Cause(ctx)
}

func (e *Engine) readRecord() (record, error) {
	rec, err := readRecord(e.o.Directories.Data)
	if err != nil {
		return record{}, err
	}
	rec.chooseAddressMap(&e.o.Config.Runner.VM)
	if rec.MachineType == "" {
		err = e.takeOverType(&rec)
	}
	return rec, err
}

func (e *Engine) facts(ctx context.Context, rec *record) (facts runnerconfig.Facts, err error) {
	dirs, vm := e.o.Directories, &e.o.Config.Runner.VM
	facts = runnerconfig.Facts{
		DataDir: dirs.Data, RuntimeDir: dirs.Runtime,
		MachineType: rec.MachineType, AddressMap: rec.AddressMap, FirstDiskSlot: rec.FirstDiskSlot,
		MonitorFD: monitorFD,
		// The first descriptor in their processes, like the monitor in QEMU's.
		TPMFD: monitorFD, ShareFD: monitorFD,
		Contained: len(e.o.Volumes) > 0,
	}
	if facts.UUID, err = e.keepUUID(vm.UUID); err != nil {
		return facts, err
	}
	if facts.DisplayPassword, err = hasDisplayPassword(e.o.DisplaySecretDir); err != nil {
		return facts, err
	}
	e.mu.Lock()
	e.ticketing = facts.DisplayPassword
	e.mu.Unlock()
	// Nothing is created for a machine that cannot start.
	if err := e.checkGiven(vm); err != nil {
		return facts, err
	}
	if facts.TLSDir, err = e.withoutAuthority(); err != nil {
		return facts, err
	}
	if facts.Taps, err = e.openTaps(ctx); err != nil {
		return facts, err
	}
	if facts.Drives, err = e.prepareDrives(ctx, vm.Drives, rec.Disks); err != nil {
		return facts, err
	}
	// Formats are recorded before anything may write to the images.
	if err := rec.write(dirs.Data); err != nil {
		return facts, err
	}
	return facts, e.openKernel(vm.KernelBoot, &facts)
}

func (e *Engine) openKernel(k *runnerconfig.KernelBoot, facts *runnerconfig.Facts) error {
	if k == nil {
		return nil
	}
	var kerr, ierr error
	facts.KernelFD, kerr = e.openGiven(k.Kernel)
	facts.InitrdFD, ierr = e.openGiven(k.Initrd)
	if err := errors.Join(kerr, ierr); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	return nil
}

func (e *Engine) openFiles(cmd qemucmd.Command, varsFD int) error {
	for _, f := range cmd.Files {
		if f.Purpose == qemucmd.FileFirmwareVars {
			if err := e.openVars(f.Path, varsFD); err != nil {
				return fmt.Errorf("UEFI variables: %w", err)
			}
		}
		if f.OpenedAs != "" {
			e.opened.Store(f.OpenedAs, f.Path)
		}
	}
	return nil
}

// keep records the choices for the machine, so that it has the same hardware and firmware at each
// start.
func (e *Engine) keep(rec *record, kind qemucmd.FirmwareKind, m qemucmd.Machine, cmd qemucmd.Command) error {
	if rec.MachineType != "" && rec.MachineType != cmd.MachineType {
		e.message(LevelWarning, "the machine type changes from %s to %s, as vm.machineType says: the guest sees other hardware", rec.MachineType, cmd.MachineType)
	}
	rec.MachineType = cmd.MachineType
	for _, f := range cmd.Files {
		if f.Purpose == qemucmd.FileFirmwareCode {
			rec.Firmware[kind] = firmwareRecord{Code: f.Path, Vars: filepath.Base(m.Firmware.VarsPath)}
		}
	}
	return rec.write(e.o.Directories.Data)
}

func (e *Engine) emulation(a qemucmd.Accelerator) Emulation {
	wanted := qemucmd.Accelerator(e.o.Config.Runner.VM.Accelerator)
	switch {
	case a == qemucmd.AcceleratorKVM:
		return Emulation{}
	case wanted != "" && wanted != qemucmd.AcceleratorAuto:
		return Emulation{Reason: conditions.ReasonEmulationRequested, Message: "the configuration asks for software emulation"}
	case e.o.Emulation.Reason == "":
		return Emulation{Reason: conditions.ReasonEmulated}
	}
	return e.o.Emulation
}

// takeOverType lets a machine that ran under VM-Operator keep its machine type, if this QEMU has
// it.
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
		cmd, err := qemucmd.BuildTemplate(m, e.o.Host, e.o.Template)
		return cmd, e.inConfiguration(err)
	}
	cmd, err := qemucmd.Build(m, e.o.Host)
	return cmd, e.inConfiguration(err)
}

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
			check(d.File, e.driveField(i)+": cd")
		} else if d.Size == 0 && d.Image == nil {
			check(d.Where(), e.driveField(i)+": disk")
		}
	}
	if k := vm.KernelBoot; k != nil {
		check(k.Kernel, "kernel")
		check(k.Initrd, "initrd")
	}
	return errors.Join(errs...)
}

func (e *Engine) makeFiles(cmd qemucmd.Command, secure bool) error {
	var errs []error
	code := ""
	for _, f := range cmd.Files {
		switch {
		case f.Purpose == qemucmd.FileSeed, f.Purpose == qemucmd.FileAnswerCD: // created later
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

func (e *Engine) makeVars(f qemucmd.File, code string, secure bool) error {
	if _, err := os.Lstat(f.Path); err == nil { // existing ones are never replaced
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

// openVars opens the UEFI variables for QEMU, as the descriptor in its command line. It checks the
// opened file once more: it may have been replaced.
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
