package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Report is what there is of a machine, and what its manifest wants beside it. Sizes are
// in bytes.
type Report struct {
	Namespace string
	Name      string
	UUID      string
	Status    host.Status
	Message   string
	// RunState is QEMU's word for what the guest does.
	RunState qmp.RunState
	Started  *time.Time
	// UptimeSeconds is the time since the guest began to execute.
	UptimeSeconds int64
	Versions      Versions
	CPUs          *CPUs
	Memory        *Memory
	Disks         []Disk
	Networks      []Network
	// Shares are the folders that the machine had at its last start.
	Shares   []Share
	Displays []Display
	Agents   []Agent
	// Guest is what the agents in the guest have reported; nil where no runner asks.
	Guest *Guest
	// Conditions are those that a cluster would have in the machine's status.
	Conditions []Condition
	// Kept are the files with what else the guest depends on.
	Kept []KeptFile
	// Wanted is from the manifest; nil where there is none.
	Wanted *Wanted
	// ManifestError is why there is a manifest and it cannot be used.
	ManifestError error

	now time.Time // when it was made
}

// Versions are those of the programs that a machine runs with, and of its hardware.
type Versions struct {
	QEMU        string
	Runner      string
	MachineType string
	Accelerator string
}

// CPUs are the processors that a machine has, and those that it has room for.
type CPUs struct {
	Plugged  int
	Possible int
}

// Memory of a machine, in bytes.
type Memory struct {
	// Actual is what the balloon leaves to the guest, Maximum the machine's RAM.
	Actual  int64
	Maximum int64
}

// Disk is a disk or a CD drive.
type Disk struct {
	// Device is the id of the guest's device.
	Device      string
	Node        string
	Medium      bool
	File        string
	Format      string
	VirtualSize int64
	ActualSize  int64
	ReadOnly    bool
	Removable   bool
	IOStatus    string
	// Problem is why the file of a machine that does not run cannot be used.
	Problem string
}

// Network is a network card.
type Network struct {
	Device string
	Model  string
	MAC    string
	// Backend is the id of QEMU's network backend.
	Backend string
}

// Share is a folder of the host that the guest can mount.
type Share struct {
	Tag      string
	Dir      string
	ReadOnly bool
	Protocol string
}

// Agent is the channel of an agent in the guest.
type Agent struct {
	Name string
	// Connected is true if the guest has the agent's channel open.
	Connected bool
}

var errNoMachine = errors.New("there is no machine: the pointer is nil")

// Machine looks into a machine of this host: what is known of it, and what its QEMU says
// if it runs.
func Machine(ctx context.Context, m *host.Machine) (Report, error) {
	r, err := stored(m, time.Now())
	if err != nil || !m.Running() {
		return r, err
	}
	err = host.AskMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(c *qmp.Client) error { return r.Query(ctx, c) })
	if err != nil {
		return r, fmt.Errorf("inspect %s: %w", m.FullName(), err)
	}
	return r, nil
}

// stored is what is known of a machine without asking its QEMU, at a time: its
// conditions have an age then. [Report.Query] adds what the QEMU of one that runs says.
func stored(m *host.Machine, now time.Time) (Report, error) {
	if m == nil {
		return Report{}, errNoMachine
	}
	s := &m.State
	r := Report{
		Namespace: m.Namespace, Name: m.Name, UUID: s.UUID, Status: m.Status, Message: m.Message(),
		Versions: Versions{QEMU: s.QEMUVersion, Runner: s.RunnerVersion, MachineType: s.MachineType, Accelerator: string(s.Accelerator)},
	}
	for _, share := range s.Shares {
		r.Shares = append(r.Shares, Share(share))
	}
	if m.Running() && s.Started != nil {
		r.Started, r.UptimeSeconds = s.Started, int64(now.Sub(*s.Started).Seconds())
		r.Guest = inside(s)
	}
	if m.Running() || s.Phase == runner.PhaseStopped { // not of a runner that died
		r.Conditions, r.now = conditionsOf(m), now
	}
	r.Wanted, r.ManifestError = wanted(m.ManifestFile())
	var err error
	if r.Kept, err = kept(m); err == nil && !m.Running() {
		err = r.stoppedDisks(m)
	}
	if err != nil {
		return r, fmt.Errorf("inspect %s: %w", m.FullName(), err)
	}
	return r, nil
}

// wanted reads the manifest of a machine; nil if there is none.
func wanted(file string) (*Wanted, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, err := spec.Load(file, data, spec.Options{Default: true, Lenient: true})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			return WantedOf(o.VirtualMachine), nil
		}
	}
	return nil, fmt.Errorf("%s: no VirtualMachine", file)
}
