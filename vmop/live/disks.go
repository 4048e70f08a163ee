package live

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const sector = 512

// WholeSectors rounds the size of a disk in bytes up to a multiple of QEMU's sectors.
func WholeSectors(bytes int64) int64 { return (bytes + sector - 1) / sector * sector }

// wantedSize returns the size that a drive is to have while the machine runs. GrowTo is only set to
// a size that the image's volume has.
func (d *decider) wantedSize(w *runnerconfig.Drive) int64 {
	if d.in.Machine.GrowsDisks {
		return int64(max(w.Size, w.GrowTo))
	}
	return int64(w.GrowTo)
}

// disks grows the disks that are larger in the configuration than at the machine's start, and
// reports the sizes of those with a size to grow to. What cannot grow now waits for the next start,
// where images grow, too. Disks never shrink.
func (d *decider) disks() {
	observed := map[string]Disk{}
	for _, o := range d.in.Observed.Disks {
		observed[o.ID] = o
	}
	started := d.in.Machine.Started.Runner.VM.Drives
	n := 0
	for i, w := range d.unplugged() {
		if i >= len(started) || started[i].Type != w.Type || started[i].Name != w.Name || started[i].Where() != w.Where() {
			break // the remaining disks of the running machine are others
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

func (d *decider) unplugged() []runnerconfig.Drive {
	return slices.DeleteFunc(slices.Clone(d.in.Config.Runner.VM.Drives), func(w runnerconfig.Drive) bool {
		return w.Type != runnerconfig.DriveCD && w.Name != "" &&
			slices.ContainsFunc(d.in.Observed.Disks, func(o Disk) bool { return o.ID == qemucmd.PluggedID(w.Name) })
	})
}

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
