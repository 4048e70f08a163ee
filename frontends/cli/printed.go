package main

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/takeover"
)

// What is printed for programs has the types of package output, whatever a command has of its own
// for its tables.

// printedMachine describes a machine of this host from its files. What cannot be read is noted.
func (p *program) printedMachine(m *host.Machine, enabled bool) output.Machine {
	vm, err := m.Resource()
	if err != nil {
		p.note("%v", err)
	}
	out := output.Machine{VirtualMachine: *vm, Observed: output.Observed{
		Message: m.Message(), UUID: m.State.UUID,
		Host: &output.Host{DataDir: m.Data, RunnerPID: m.Runner, QEMUPID: m.QEMU, Enabled: enabled},
	}}
	if m.Running() {
		out.Observed.Host.RuntimeDir = m.State.RuntimeDir
	}
	return out
}

// printedHere is printedMachine and reports whether systemd starts the machine.
func (p *program) printedHere(h *host.Host, m *host.Machine) output.Machine {
	return p.printedMachine(m, len(h.Enabled(m.Namespace, m.Name)) > 0)
}

// printedReport adds a report to base, which is empty for a QEMU that does not run a machine of
// this host.
func printedReport(r *inspect.Report, base output.Machine) output.Machine {
	o, s := &base.Observed, &base.Status
	if base.Name == "" {
		base.Name = r.Name
		s.Phase, s.Ready = string(r.Status), r.Status == host.StatusRunning
		s.MachineType, s.Accelerator = r.Versions.MachineType, r.Versions.Accelerator
		s.Versions = &spec.Versions{QEMU: r.Versions.QEMU}
	}
	o.UUID = cmp.Or(r.UUID, o.UUID)
	if r.RunState != "" || r.CPUs != nil || r.UptimeSeconds > 0 {
		o.QEMU = &output.QEMU{RunState: string(r.RunState), UptimeSeconds: r.UptimeSeconds}
	}
	if r.CPUs != nil {
		s.CPUs, o.QEMU.MaximumCPUs = int32(min(r.CPUs.Plugged, math.MaxInt32)), r.CPUs.Possible
	}
	if r.Memory != nil && o.QEMU != nil {
		s.RAM, o.QEMU.MaximumRAM = output.Bytes(r.Memory.Actual), output.Bytes(r.Memory.Maximum)
	}
	if g := r.Guest; g != nil && (g.WantedUser != "" || len(g.Problems) > 0) {
		o.Guest = &output.Guest{WantedUser: g.WantedUser, Problems: g.Problems}
	}
	for _, d := range r.Disks {
		out := output.DiskUse{
			DiskName: diskName(r, d.Device), Device: d.Device, Node: d.Node, Path: d.File, Format: d.Format,
			Size: known(d.VirtualSize), ReadOnly: d.ReadOnly, Removable: d.Removable, IOStatus: d.IOStatus, Problem: d.Problem,
		}
		if d.Medium {
			out.Allocated = output.Bytes(d.ActualSize)
		}
		o.Disks = append(o.Disks, out)
	}
	for _, n := range r.Networks {
		o.Networks = append(o.Networks, output.Network{Device: n.Device, Model: n.Model, MAC: n.MAC, Backend: n.Backend})
	}
	for _, f := range r.Shares {
		o.Shares = append(o.Shares, output.Share{Tag: f.Tag, Path: f.Dir, ReadOnly: f.ReadOnly, Protocol: f.Protocol})
	}
	for _, d := range r.Displays {
		o.Displays = append(o.Displays, output.Display(d))
	}
	for _, a := range r.Agents {
		o.Agents = append(o.Agents, output.Agent(a))
	}
	for _, k := range r.Kept {
		o.Kept = append(o.Kept, output.KeptFile{Path: k.File, Holds: k.Holds, Size: output.Bytes(k.Size)})
	}
	return base
}

func diskName(r *inspect.Report, device string) string {
	if r.Wanted == nil {
		return ""
	}
	if i := slices.IndexFunc(r.Wanted.Disks, func(d inspect.WantedDisk) bool { return d.Device == device }); i >= 0 {
		return r.Wanted.Disks[i].Name
	}
	return ""
}

func printedDisks(m *host.Machine, disks []host.Disk) []output.Disk {
	out := make([]output.Disk, len(disks))
	for i, d := range disks {
		out[i] = output.Disk{
			ObjectMeta: named(m.Namespace, d.Name), VirtualMachineName: m.Name, Own: d.Own,
			DiskUse: output.DiskUse{DiskName: d.Name, Path: d.Path, Format: string(d.Format), Size: known(d.Size), Problem: d.Problem},
		}
		if d.Size != 0 || d.Allocated != 0 {
			out[i].Allocated = output.Bytes(d.Allocated)
		}
	}
	return out
}

func printedSnapshots(m *host.Machine, all []host.Snapshot) []output.Snapshot {
	out := make([]output.Snapshot, len(all))
	for i, s := range all {
		out[i] = output.Snapshot{
			ObjectMeta: named(m.Namespace, s.Name), VirtualMachineName: m.Name, Disks: []output.SnapshotDisk{},
			Allocated: output.Bytes(s.Allocated), Running: s.Running, Frozen: s.Frozen, Unfrozen: s.Unfrozen,
		}
		out[i].CreationTimestamp = metav1.NewTime(s.Created)
		for _, d := range s.Disks {
			out[i].Disks = append(out[i].Disks, output.SnapshotDisk{Name: d.Name, File: d.File, Path: d.Path, FileSize: output.Bytes(d.Size), Template: d.Template})
		}
	}
	return out
}

func printedImages(all []host.CachedImage) []output.CachedImage {
	out := make([]output.CachedImage, len(all))
	for i, m := range all {
		out[i] = output.CachedImage{
			ObjectMeta: named("", m.Digest), Digest: m.Digest, SHA512: m.SHA512, Sources: m.Sources, PathInImage: m.Path, Path: m.File,
			Format: string(m.Format), Size: output.Bytes(m.Size), Allocated: output.Bytes(m.Allocated), LastUsed: metav1.NewTime(m.Used), InUse: m.InUse,
		}
		out[i].CreationTimestamp = metav1.NewTime(m.Fetched)
	}
	return out
}

func printedImage(r *imageinspect.Report) *output.DiskImage {
	out := &output.DiskImage{
		Path: r.Path, Format: string(r.Format), Size: known(r.VirtualSize), FileSize: output.Bytes(r.FileSize), Allocated: output.Bytes(r.AllocatedSize),
		Refused: r.Refused, FileSystem: (*output.FileSystem)(r.FileSystem), NoCloud: (*output.NoCloud)(r.NoCloud), Notes: r.Notes,
	}
	if q := r.Qcow2; q != nil {
		out.Qcow2 = &output.Qcow2{
			Version: q.Version, ClusterSize: output.Bytes(q.ClusterSize), BackingFile: q.BackingFile,
			Encryption: q.Encryption, IncompatibleFeatures: q.IncompatibleFeatures,
		}
	}
	if t := r.PartitionTable; t != nil {
		out.PartitionTable = &output.PartitionTable{Type: t.Type, ID: t.ID, SectorSize: output.Bytes(t.SectorSize), Partitions: []output.Partition{}}
		for _, p := range t.Partitions {
			out.PartitionTable.Partitions = append(out.PartitionTable.Partitions, output.Partition{
				Index: p.Index, Type: p.Type, Label: p.Label, UUID: p.UUID, Start: output.Bytes(p.Start), Size: output.Bytes(p.Size),
				FileSystem: (*output.FileSystem)(p.FileSystem),
			})
		}
	}
	return out
}

func printedFindings(found []host.Finding) []output.HostFinding {
	out := make([]output.HostFinding, len(found))
	for i, f := range found {
		out[i] = output.HostFinding{Subject: f.Subject, Status: string(f.Status), Message: f.Found, Do: f.Do}
	}
	return out
}

func printedTakeover(found []takeover.Finding) []output.TakeoverFinding {
	out := make([]output.TakeoverFinding, len(found))
	for i, f := range found {
		out[i] = output.TakeoverFinding{Urgency: string(f.Urgency), Topic: string(f.Topic), Message: f.What, Do: f.Do}
		if f.Kind != "" {
			out[i].InvolvedObject = &corev1.ObjectReference{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, FieldPath: f.Field}
		}
	}
	return out
}
