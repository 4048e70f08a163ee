package live

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// sector is what QEMU's block layer counts in, in bytes: the size of a disk is a
// multiple.
const sector = 512

// disks grows the disks whose size in the configuration is larger than it was when the
// machine was started. What cannot be done now stays among what waits for the next
// start, where images grow, too. Nothing ever shrinks.
func (d *decider) disks() {
	if !d.in.Machine.GrowsDisks {
		return
	}
	observed := map[string]Disk{}
	for _, o := range d.in.Observed.Disks {
		observed[o.ID] = o
	}
	started := d.in.Machine.Started.Runner.VM.Drives
	n := 0
	for i, w := range d.in.Config.Runner.VM.Drives {
		if i >= len(started) || started[i].Type != w.Type || started[i].Name != w.Name || started[i].Where() != w.Where() {
			break // from here on the disks of the running machine are others
		}
		if w.Type == runnerconfig.DriveCD {
			continue
		}
		o, there := observed[qemucmd.DiskID(n)]
		n++
		switch {
		case w.Size <= started[i].Size || !there:
		case o.Size >= int64(w.Size):
			d.grown = append(d.grown, i)
		default:
			bytes := (int64(w.Size) + sector - 1) / sector * sector
			_, problem := d.attempt(d.goal(fmt.Sprint(o.ID, " of ", bytes)), GrowDisk{ID: o.ID, Node: o.Node, Bytes: bytes})
			if problem != "" && d.refusedGrowth == "" {
				d.refusedGrowth = "; the disk " + cmp.Or(w.Name, o.ID) + " does not grow now" + because(problem)
			}
		}
	}
}

// withoutGrown is the wanted configuration with the disks that have grown as they
// were at the start, and without those that were plugged since.
func (d *decider) withoutGrown() *runnerconfig.Config {
	c := *d.in.Config
	c.Runner.VM.Drives = slices.Clone(c.Runner.VM.Drives)
	for _, i := range d.grown {
		c.Runner.VM.Drives[i].Size = d.in.Machine.Started.Runner.VM.Drives[i].Size
	}
	drives := c.Runner.VM.Drives
	for n := len(d.in.Machine.Started.Runner.VM.Drives); n < len(drives); {
		if slices.ContainsFunc(d.in.Observed.Disks, func(o Disk) bool { return o.ID == qemucmd.PluggedID(drives[n].Name) }) {
			drives = slices.Delete(drives, n, n+1)
		} else {
			n++
		}
	}
	c.Runner.VM.Drives = drives
	return &c
}
