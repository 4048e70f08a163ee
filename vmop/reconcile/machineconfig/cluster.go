package machineconfig

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// ForCluster returns the content of the ConfigMap from which the runner in a machine's pod gets
// its configuration. The result is valid after [runnerconfig.Default] was applied to it. The
// error names every field that cannot be expressed, as [*Error].
//
// # The instance-id
//
// When the instance-id changes, cloud-init runs its once-per-instance modules again, and among
// other things replaces the SSH host keys. VM-Operator writes v<metadata.generation>, so that a
// guest considers itself new after every change of its manifest, such as the number of CPUs.
//
// Here the default is <namespace>.<name>. What cloud-init has set up is on the disks, and the
// disks belong to the name: their claims are named after the machine and outlive it. A machine
// that is deleted and created again under its name finds its old disks and has nothing to set up;
// one that got a copy of them under another name has. (The UID would be wrong in the first case.)
//
// In a cluster that is taken over guests keep theirs: the caller passes the instance-id of the
// existing ConfigMap as InstanceID, which then stays as VM-Operator last wrote it.
func ForCluster(vm *spec.VirtualMachine, o Options) (runnerconfig.Config, error) {
	if vm == nil {
		return runnerconfig.Config{}, errNoMachine
	}
	vm = manifest.Defaulted(vm)
	return ForDefaulted(vm, Disks(vm), o)
}

// ForDefaulted is [ForCluster] for a machine that has its defaults.
func ForDefaulted(vm *spec.VirtualMachine, disks []Disk, o Options) (runnerconfig.Config, error) {
	if vm == nil {
		return runnerconfig.Config{}, errNoMachine
	}
	if vm.Spec.RunnerTemplate == nil || vm.Spec.VM.MaximumRAM == nil {
		return runnerconfig.Config{}, errNoDefaults
	}
	var p problems
	c := machineConfig(vm, ImageRepositoryDir, ConfigDir, o, &p)
	c.Runner.DataDir = DataDir
	c.Runner.Generation = max(vm.Generation, 0)
	c.Runner.GuestResetEnds = o.GuestResetEnds
	c.Runner.VM.Network = o.Origin.former(c.Runner.VM.Network)
	if o.Origin == OriginVMOperator {
		c.Runner.VM.BootOrder, c.Runner.VM.CPUOrder = runnerconfig.BootOrderFirmware, runnerconfig.CPUOrderHighest
	}
	for _, n := range c.Runner.VM.Network {
		for i := range n.HostForwards {
			// Clients of a forward are outside of the pod.
			setString(&n.HostForwards[i].HostAddress, "0.0.0.0")
		}
	}
	clusterDisplay(&c, vm, o.OpenDisplay)
	c.Runner.VM.Shares = clusterShares(vm.Spec.VM.Shares, &p)
	for i := range vm.Spec.VM.USBDevices {
		p.add(fmt.Sprintf("spec.vm.usbDevices[%d]", i), "is for machines of one host: pods get no USB devices of their nodes, and there is no setting that gives them any")
	}
	for _, d := range disks {
		d.check(&p)
		c.Runner.VM.Drives = append(c.Runner.VM.Drives, clusterDrive(&d, &o, &p))
	}
	if err := errors.Join(p...); err != nil {
		return runnerconfig.Config{}, fmt.Errorf("%s: %w", vm.Title(), err)
	}
	return c, nil
}

// clusterDrive returns a drive by its path in the pod. A disk that VM-Operator can have too is
// written as it does, without a name; its path ends in the name anyway.
func clusterDrive(d *Disk, o *Options, p *problems) runnerconfig.Drive {
	drive := runnerconfig.Drive{Type: runnerconfig.DriveRaw, BootIndex: intPointer(d.Entry.Bootindex)}
	switch {
	case d.IsImage():
		// The volume is mounted read-only, so the file must be opened read-only.
		drive.Name, drive.File, drive.ReadOnly = d.Name, path.Join(DiskMountDir, d.Name, DiskFile), true
		if d.Format == runnerconfig.FormatISO {
			drive.Type = runnerconfig.DriveCD
		}
	case d.IsCD():
		return cdDrive(d, ImageRepositoryDir, p)
	case d.VolumeMode(o.VolumeModes) == corev1.PersistentVolumeFilesystem:
		drive.Name = d.Name
		drive.File = path.Join(DiskMountDir, d.Name, DiskFile)
		drive.Size = requestedSize(d)
		if d.Entry.PersistentVolumeClaim != nil {
			drive.GrowTo = runnerconfig.Bytes(o.GrowTo[d.Claim])
		}
		drive.NewImage = slices.Contains(o.NewDisks, d.Name)
		drive.Image = d.image("", false, p)
		if drive.Ephemeral() {
			drive.File = path.Join(DiskMountDir, d.Name, ephemeralDiskFile)
		}
	default:
		drive.Resource = path.Join(DiskDeviceDir, d.Name)
		if d.Entry.PersistentVolumeClaim != nil {
			drive.GrowTo = runnerconfig.Bytes(o.GrowTo[d.Claim])
		}
	}
	return drive
}

func requestedSize(d *Disk) runnerconfig.Bytes {
	if c := d.Entry.ContainerDisk; c != nil && c.Size != nil {
		return runnerconfig.Bytes(spec.Bytes(*c.Size))
	}
	if t := d.Entry.Template(); t != nil {
		if q, ok := t.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
			return runnerconfig.Bytes(spec.Bytes(q))
		}
	}
	return 0
}

func cdDrive(d *Disk, repository string, p *problems) runnerconfig.Drive {
	file, err := imageLocation(d.Entry.Cdrom.Image, repository, true)
	if err != nil {
		p.add(d.Field()+".cdrom.image", "%v", err)
	}
	return runnerconfig.Drive{Type: runnerconfig.DriveCD, File: file, BootIndex: intPointer(d.Entry.Bootindex)}
}

func clusterDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, open bool) {
	for _, s := range c.Runner.VM.Display.Servers() {
		s.AdmitAnyone(open)
		if wantsSocket(s) {
			s.MoveToSocket(socketIn(RuntimeDir(vm.Name), s.Protocol))
		}
	}
	if vm.Spec.VM.Display.TLS != nil {
		c.Runner.VM.Display.TLS = &runnerconfig.DisplayTLS{Dir: DisplayTLSDir}
	}
}
