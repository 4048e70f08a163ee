package live

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// sector is what QEMU's block layer counts in, in bytes: the size of a disk is a
// multiple.
const sector = 512

// WholeSectors is a size of a disk in bytes, rounded up to what QEMU counts in.
func WholeSectors(bytes int64) int64 { return (bytes + sector - 1) / sector * sector }

// wantedSize is how large a drive is to be while the machine runs. Who says to what size
// an image is to grow knows that its volume has that.
func (d *decider) wantedSize(w *runnerconfig.Drive) int64 {
	if d.in.Machine.GrowsDisks {
		return int64(max(w.Size, w.GrowTo))
	}
	return int64(w.GrowTo)
}

// disks grows the disks whose size in the configuration is larger than it was when the
// machine was started, and tells how large those are that have a size to grow to. What
// cannot be done now stays among what waits for the next start, where images grow, too.
// Nothing ever shrinks.
func (d *decider) disks() {
	observed := map[string]Disk{}
	for _, o := range d.in.Observed.Disks {
		observed[o.ID] = o
	}
	started := d.in.Machine.Started.Runner.VM.Drives
	n := 0
	for i, w := range d.unplugged() {
		if i >= len(started) || started[i].Type != w.Type || started[i].Name != w.Name || started[i].Where() != w.Where() {
			break // from here on the disks of the running machine are others
		}
		if w.Type == runnerconfig.DriveCD {
			continue
		}
		o, there := observed[qemucmd.DiskID(n)]
		n++
		wanted, problem := d.wantedSize(&w), ""
		switch {
		case wanted <= d.wantedSize(&started[i]) || !there:
		case o.Size >= wanted:
			d.grown = append(d.grown, i)
		case qemucmd.IsOverlay(o.Node):
			problem = "it is just being copied, and grows after that"
			d.refusedGrowth = cmp.Or(d.refusedGrowth, "; the disk "+cmp.Or(w.Name, o.ID)+" does not grow now"+because(problem))
		default:
			bytes := WholeSectors(wanted)
			_, problem = d.attempt(d.goal(fmt.Sprint(o.ID, " of ", bytes)), GrowDisk{ID: o.ID, Node: o.Node, Bytes: bytes})
			if problem != "" && d.refusedGrowth == "" {
				d.refusedGrowth = "; the disk " + cmp.Or(w.Name, o.ID) + " does not grow now" + because(problem)
			}
		}
		if w.GrowTo > 0 && there {
			d.out.Disks = append(d.out.Disks, DiskSize{Name: cmp.Or(w.Name, path.Base(w.Where())), Size: o.Size, Message: problem})
		}
	}
}

// unplugged are the drives of the wanted configuration without those that were plugged
// since the machine was started, wherever in the list they are.
func (d *decider) unplugged() []runnerconfig.Drive {
	return slices.DeleteFunc(slices.Clone(d.in.Config.Runner.VM.Drives), func(w runnerconfig.Drive) bool {
		return w.Type != runnerconfig.DriveCD && w.Name != "" &&
			slices.ContainsFunc(d.in.Observed.Disks, func(o Disk) bool { return o.ID == qemucmd.PluggedID(w.Name) })
	})
}

// withoutGrown is the wanted configuration with the disks that have grown as they
// were at the start, and without those that were plugged since.
func (d *decider) withoutGrown() *runnerconfig.Config {
	c := *d.in.Config
	c.Runner.VM.Drives = d.unplugged()
	for _, i := range d.grown {
		was := &d.in.Machine.Started.Runner.VM.Drives[i]
		if d.in.Machine.GrowsDisks {
			c.Runner.VM.Drives[i].Size = was.Size
		}
		c.Runner.VM.Drives[i].GrowTo = was.GrowTo
	}
	return &c
}
