package inspect

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/spec"
)

// Report is the state of a machine, together with what its manifest wants. Sizes are in bytes.
type Report struct {
	Namespace string
	Name      string
	UUID      string
	Status    host.Status
	Message   string
	// RunState is QEMU's name for the state of the guest.
	RunState qmp.RunState
	// GuestPanics is the number of panics that the guest has reported since its machine was
	// started.
	GuestPanics int
	Started     *time.Time
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
	// Kept are the files that the guest depends on beside its disks.
	Kept []KeptFile
	// Wanted is from the manifest; nil without one.
	Wanted *Wanted
	// ManifestError is why an existing manifest cannot be used.
	ManifestError error

	now time.Time // the time of the report
}

// Versions are the versions of the programs that run a machine, and of its hardware.
type Versions struct {
	QEMU        string
	Runner      string
	MachineType string
	Accelerator string
}

// CPUs are the current and the maximum number of processors.
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
	// Connected reports whether the guest has the agent's channel open.
	Connected bool
}

// Display is a display server of a machine.
type Display struct {
	// Protocol is spice or vnc.
	Protocol string
	// Address is host and port, or the path of a socket.
	Address string
	// Websocket is host and port for viewers in browsers; VNC only.
	Websocket string
	// Auth is QEMU's name: none, or spice or vnc for a password.
	Auth string
	// Clients is the number of viewers. QEMU counts VNC viewers from the start of their connection,
	// before they have given a password.
	Clients int
}

// String returns the display as in a line of the table.
func (d Display) String() string {
	where := d.Address
	if d.Websocket != "" {
		where += ", websocket " + d.Websocket
	}
	return fmt.Sprintf("%s %s, authentication %s, clients %d", d.Protocol, where, d.Auth, d.Clients)
}

// KeptFile is a file that the guest depends on, beside its disks.
type KeptFile struct {
	File string
	// Holds describes its content.
	Holds string
	Size  int64
}

// Wanted is what a manifest wants of what a [Report] has.
type Wanted struct {
	CPUs        CPUs
	Memory      Memory
	MachineType string
	Accelerator spec.Accelerator
	Disks       []WantedDisk
	Networks    []WantedNetwork
	// Displays are the protocols by which the display is to be served.
	Displays []string
}

// WantedDisk is a disk or a CD drive of a manifest.
type WantedDisk struct {
	// Device is the id that the guest's device has.
	Device string
	Name   string
	// Size is the requested size; 0 if none is.
	Size int64
	// Image is the image of a CD drive, or cloud-init for its seed.
	Image string
}

// WantedNetwork is a network of a manifest.
type WantedNetwork struct {
	// Device is the id that the guest's device has.
	Device string
	// Type is tap or user.
	Type string
	MAC  string
	// HostForwards are ports of this host that lead to the guest.
	HostForwards []spec.HostForward
}

// Forwards lists the forwarded ports in the notation of [Forwards].
func (n *WantedNetwork) Forwards() string { return Forwards(n.HostForwards, "127.0.0.1") }

// Forwards lists forwarded ports; anywhere is the address of those that specify none.
func Forwards(all []spec.HostForward, anywhere string) string {
	var out []string
	for _, f := range all {
		text := fmt.Sprintf("%s:%d->%d", cmp.Or(f.HostAddress, anywhere), f.HostPort, f.GuestPort)
		if f.Protocol == spec.ForwardUDP {
			text += "/udp"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
