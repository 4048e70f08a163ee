package main

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/takeover"
)

// What is printed for programs has the types of package output, whatever a command has
// of its own for its tables.

// printList prints objects as JSON or YAML.
func printList[T any, P interface {
	*T
	output.Object
}](p *program, format string, items []T) error {
	return write(p.stdout, format, output.ListOf[T, P](items))
}

// printOne prints one object as JSON or YAML.
func (p *program) printOne(format string, object output.Object) error {
	return write(p.stdout, format, output.One(object))
}

// named is the metadata of something that is called so.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// known is a number of bytes that is missing where it is 0: nobody knows it then.
func known(n int64) *resource.Quantity {
	if n == 0 {
		return nil
	}
	return output.Bytes(n)
}

// rate is a number of bytes in a second.
func rate(n float64) *resource.Quantity { return output.Bytes(int64(math.Round(n))) }

// printedMachine is a machine of this host, as far as its files tell. What of it cannot
// be read is noted.
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

// printedHere is printedMachine with whether systemd starts the machine.
func (p *program) printedHere(h *host.Host, m *host.Machine) output.Machine {
	return p.printedMachine(m, len(h.Enabled(m.Namespace, m.Name)) > 0)
}

// printedReport is a machine of this host with what was found out about it; base is
// what is known of it otherwise, empty for a QEMU that is not of a machine of this host.
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

// diskName is the manifest's name of a device; empty if it has none.
func diskName(r *inspect.Report, device string) string {
	if r.Wanted == nil {
		return ""
	}
	if i := slices.IndexFunc(r.Wanted.Disks, func(d inspect.WantedDisk) bool { return d.Device == device }); i >= 0 {
		return r.Wanted.Disks[i].Name
	}
	return ""
}

// printedFromCluster is a machine of a cluster; pod is nil where nobody has asked for it.
func printedFromCluster(vm *spec.VirtualMachine, pod *podReport) output.Machine {
	out := output.Machine{VirtualMachine: *vm, Observed: output.Observed{Message: machinekind.ProgressOf(vm).Waiting, UUID: vm.Spec.VM.MachineUUID}}
	out.ManagedFields = nil // kubectl does not show them either
	if pod != nil {
		out.Observed.Pod = &output.Pod{Phase: pod.Phase, NodeName: pod.Node, PodIP: pod.IP, Image: pod.Image, Claims: pod.Claims}
	}
	return out
}

// printedChanges are the differences of one machine.
func printedChanges(namespace, name string, found []changes.Change) output.Changes {
	out := output.Changes{ObjectMeta: named(namespace, name), Changes: []output.Change{}}
	for _, c := range found {
		out.Changes = append(out.Changes, output.Change{AwaitingChange: c.Awaiting(), Applied: string(c.Applied)})
	}
	return out
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

func printedEvents(namespace string, found []cluster.Happening) []output.Event {
	out := make([]output.Event, len(found))
	for i, h := range found {
		kind, name, _ := strings.Cut(h.Object, "/")
		out[i] = output.Event{
			ObjectMeta:     named(namespace, h.Name),
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
			Type:           h.Type, Reason: h.Reason, Message: h.Message, Count: int32(min(h.Count, math.MaxInt32)),
			FirstTimestamp: metav1.NewTime(h.First), LastTimestamp: metav1.NewTime(h.Last),
		}
	}
	return out
}

func printedMetrics(u *used) output.Metrics {
	out := output.Metrics{
		ObjectMeta: named(u.Namespace, u.Name), Timestamp: metav1.NewTime(u.at), WindowSeconds: u.window.Seconds(),
		Usage: output.Usage{
			CPU: resource.NewScaledQuantity(int64(math.Round(u.CPU*1e9)), resource.Nano), Memory: output.Bytes(u.Memory),
			DiskReadPerSecond: rate(u.DiskReadPerSecond), DiskWrittenPerSecond: rate(u.DiskWrittenPerSecond),
		},
		CPUSeconds: u.CPUSeconds, DiskRead: output.Bytes(u.DiskRead), DiskWritten: output.Bytes(u.DiskWritten),
	}
	if n := u.Net; n != nil {
		out.Usage.NetReceivedPerSecond, out.Usage.NetSentPerSecond = rate(n.ReceivedPerSecond), rate(n.SentPerSecond)
		out.NetReceived, out.NetSent = output.Bytes(n.Received), output.Bytes(n.Sent)
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

func printedLeftovers(found []leftover) []output.Leftover {
	out := make([]output.Leftover, len(found))
	for i, l := range found {
		out[i] = output.Leftover{
			ObjectMeta: named(l.Namespace, l.Name), ObjectKind: l.Kind, VirtualMachineName: l.Machine, Size: known(l.Size), DeleteCommand: l.Delete,
		}
		out[i].CreationTimestamp = metav1.NewTime(l.Created)
	}
	return out
}

func printedOperations(results []operated) []output.Operation {
	out := make([]output.Operation, len(results))
	for i, r := range results {
		o := spec.NewOperation(r.Namespace, r.Machine, spec.OperationType(r.Type))
		o.GenerateName, o.Name = "", r.Operation
		o.Spec.Force = r.Force
		if r.made != nil {
			o = r.made
			o.ManagedFields = nil
		}
		out[i] = output.Operation{VirtualMachineOperation: *o, Observed: output.Result{Result: r.Phase, Message: r.Message}}
	}
	return out
}

// printedResult is what became of what was asked for of a disk of a cluster.
func printedResult(d *diskDone) *output.DiskResult {
	return &output.DiskResult{
		ObjectMeta: named(d.Namespace, d.Disk), Action: d.Action, VirtualMachineName: d.Machine, File: d.File, Done: d.Done,
		Observed: output.Result{Result: d.Phase, Message: d.Message},
	}
}

func printedGuest(r *guestReport) *output.GuestInfo {
	out := &output.GuestInfo{AgentVersion: r.Agent, HostName: r.HostName}
	if o := r.OS; o != nil {
		out.OSInfo = &output.OSInfo{ID: o.ID, PrettyName: o.Name, VersionID: o.Version, KernelRelease: o.KernelRelease, Machine: o.Machine}
	}
	for _, i := range r.Interfaces {
		out.Interfaces = append(out.Interfaces, output.Interface{Name: i.Name, MAC: i.MAC, IPAddresses: i.Addresses})
	}
	return out
}

func printedConnection(d displayConnection) *output.DisplayConnection {
	return &output.DisplayConnection{Protocol: d.Protocol, URI: d.URI, Path: d.Socket, Host: d.Host, Port: d.Port, Auth: d.Auth}
}
