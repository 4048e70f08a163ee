package inspect

import (
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// matchPlugged finds the manifest's disks among those plugged since the start, which have ids of
// their own.
func (r *Report) matchPlugged() {
	if r.Wanted == nil {
		return
	}
	for i, w := range r.Wanted.Disks {
		id := qemucmd.PluggedID(w.Name)
		if w.Name != "" && slices.ContainsFunc(r.Disks, func(d Disk) bool { return d.Device == id }) {
			r.Wanted.Disks[i].Device = id
		}
	}
}

// stoppedDisks returns the disks of a machine that does not run: the files of its last start that
// are in its manifest.
func (r *Report) stoppedDisks(m *host.Machine) error {
	def, err := m.Definition()
	if err != nil || r.Wanted == nil {
		return err
	}
	for _, d := range r.Wanted.Disks {
		file := def.Used[d.Name]
		if d.Name == "" || file == "" {
			continue
		}
		out := Disk{Device: d.Device, Medium: true, File: file}
		if info, err := os.Stat(file); err != nil {
			out.Problem = strings.TrimPrefix(err.Error(), "stat ")
		} else if info.Mode().IsRegular() {
			out.ActualSize = filecopy.Allocated(info)
		}
		r.Disks = append(r.Disks, out)
	}
	return nil
}

// WantedOf returns what a [Report] compares of a manifest with its defaults applied; nil of none.
func WantedOf(vm *spec.VirtualMachine) *Wanted {
	if vm == nil {
		return nil
	}
	m := &vm.Spec.VM
	w := &Wanted{
		CPUs:        CPUs{Plugged: 1, Possible: 1},
		MachineType: m.MachineType, Accelerator: m.Accelerator,
		Displays: wantedDisplays(m.Display),
	}
	if m.MaximumCPUs != nil {
		w.CPUs.Possible = int(*m.MaximumCPUs)
	}
	if m.CurrentCPUs != nil {
		w.CPUs.Plugged = int(*m.CurrentCPUs)
		w.CPUs.Possible = max(w.CPUs.Possible, w.CPUs.Plugged)
	}
	if m.MaximumRAM != nil {
		w.Memory.Maximum = spec.Bytes(*m.MaximumRAM)
		w.Memory.Actual = w.Memory.Maximum
	}
	if m.CurrentRAM != nil {
		w.Memory.Actual = spec.Bytes(*m.CurrentRAM)
	}
	// Package qemucmd counts disks and CD drives separately in the ids of devices.
	disks, cds := 0, 0
	for _, d := range machineconfig.Disks(vm) {
		if d.IsCD() {
			w.Disks = append(w.Disks, WantedDisk{Device: qemucmd.CDID(cds), Image: d.Entry.Cdrom.Image})
			cds++
			continue
		}
		out := WantedDisk{Device: qemucmd.DiskID(disks), Name: d.Name}
		if t := d.Entry.Template(); t != nil {
			if q, ok := t.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
				out.Size = spec.Bytes(q)
			}
		}
		w.Disks = append(w.Disks, out)
		disks++
	}
	if vm.Spec.HasSeed() {
		w.Disks = append(w.Disks, WantedDisk{Device: qemucmd.SeedID, Image: "cloud-init"})
	}
	if vm.Spec.HasAnswerCD() {
		w.Disks = append(w.Disks, WantedDisk{Device: qemucmd.AnswerCDID, Image: "sysprep"})
	}
	for i, n := range m.Networks {
		out := WantedNetwork{Device: qemucmd.NICID(i), Type: "user"}
		switch {
		case n.Tap != nil:
			out.Type, out.MAC = "tap", n.Tap.MAC
		case n.User != nil:
			out.MAC, out.HostForwards = n.User.MAC, n.User.HostForwards
		}
		w.Networks = append(w.Networks, out)
	}
	return w
}
