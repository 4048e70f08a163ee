package live_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A disk that shall be larger than it was when the machine was started grows, one
// that QEMU refuses to enlarge waits for the next start, and none ever shrinks or is
// touched in another one's place.
func TestDisksGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.Bool(), 1, 5).Draw(t, "disks, not CDs")
		size := rapid.Int64Range(0, 8)
		var started, wanted []runnerconfig.Drive
		has := map[string]int64{}
		refuses := map[string]bool{}
		same := true // so far
		grows, wants := map[int]string{}, map[int]int64{}
		inCluster := rapid.IntRange(0, 3).Draw(t, "in a cluster") == 0
		for i, disk := range kinds {
			if !disk {
				started = append(started, runnerconfig.Drive{Type: runnerconfig.DriveCD})
				wanted = append(wanted, runnerconfig.Drive{Type: runnerconfig.DriveCD})
				continue
			}
			id := fmt.Sprint("disk", len(has))
			d := runnerconfig.Drive{Type: runnerconfig.DriveRaw, Name: id, File: "/" + id, Size: runnerconfig.Bytes(size.Draw(t, "started with") * 1000)}
			w := d
			w.Size = runnerconfig.Bytes(size.Draw(t, "wanted") * 1000)
			if rapid.Bool().Draw(t, "by itself") {
				d.GrowTo, w.GrowTo = runnerconfig.Bytes(size.Draw(t, "started to grow to")*1000), runnerconfig.Bytes(size.Draw(t, "grows to")*1000)
			}
			if rapid.IntRange(0, 4).Draw(t, "another image") == 0 {
				w.File = "/other"
				same = false
			}
			started, wanted = append(started, d), append(wanted, w)
			has[id] = max(int64(d.Size), int64(d.GrowTo), size.Draw(t, "image")*1000)
			refuses[id] = rapid.IntRange(0, 3).Draw(t, "refuses") == 0
			was := int64(d.GrowTo)
			wants[i] = int64(w.GrowTo)
			if !inCluster {
				was, wants[i] = max(was, int64(d.Size)), max(wants[i], int64(w.Size))
			}
			if same && wants[i] > was {
				grows[i] = id
			}
		}
		config := func(drives []runnerconfig.Drive) *runnerconfig.Config {
			c := config(1, 0, 7)
			c.Runner.VM.Drives = drives
			return c
		}
		before := config(started)
		in := live.Input{
			Config: config(wanted), Machine: live.Machine{Started: before, RAM: ram, GrowsDisks: !inCluster},
			Memory: live.Start(before), Observed: live.Observed{RunState: "running"}, Now: time.Unix(1_800_000_000, 0),
		}
		var d live.Decision
		for range 40 {
			in.Observed.Disks = nil
			for id, size := range has {
				in.Observed.Disks = append(in.Observed.Disks, live.Disk{ID: id, Node: "node of " + id, Size: size})
			}
			slices.SortFunc(in.Observed.Disks, func(a, b live.Disk) int { return strings.Compare(a.ID, b.ID) })
			d = live.Decide(in)
			in.Memory = d.Memory
			asked := false
			for _, s := range d.Steps {
				g, ok := s.(live.GrowDisk)
				if !ok {
					continue
				}
				asked = true
				problem := ""
				switch {
				case !slices.Contains(slices.Collect(maps.Values(grows)), g.ID):
					t.Fatalf("%+v, of a disk that is another one or shall not grow", g)
				case g.Bytes <= has[g.ID], g.Bytes%512 != 0, g.Node != "node of "+g.ID:
					t.Fatalf("%+v of a disk of %d", g, has[g.ID])
				case refuses[g.ID]:
					problem = "refused by the model"
				default:
					has[g.ID] = g.Bytes
				}
				in.Memory = in.Memory.Result(s, problem)
			}
			if !asked {
				if d.Wake.IsZero() {
					break
				}
				in.Now = d.Wake
			}
		}
		said := ""
		for _, c := range d.Conditions {
			if c.Type == live.RestartRequired {
				said = c.Message
			}
		}
		for i, id := range grows {
			reached := has[id] >= wants[i]
			for key, should := range map[string]bool{"size": wanted[i].Size > started[i].Size && (inCluster || !reached), "growTo": wanted[i].GrowTo > started[i].GrowTo && !reached} {
				if waits := strings.Contains(said, fmt.Sprintf("vm.drives[%d].%s", i, key)); waits != should {
					t.Fatalf("disk %d has %d of %d, and its %s waits: %v: %s", i, has[id], wants[i], key, waits, said)
				}
			}
			if !reached && !refuses[id] {
				t.Fatalf("disk %d has not grown: %s", i, said)
			}
		}
		// Of those that exist by themselves is told what the guest has.
		told := map[string]live.DiskSize{}
		for _, s := range d.Disks {
			told[s.Name] = s
		}
		same = true
		for i, w := range wanted {
			if same = same && w.File == started[i].File; w.Type == runnerconfig.DriveCD {
				continue
			}
			s, is := told[w.Name]
			if is != (same && w.GrowTo > 0) || is && s.Size != has[w.Name] || is && (s.Message != "") != (refuses[w.Name] && grows[i] != "" && has[w.Name] < wants[i]) {
				t.Fatalf("of disk %d, which has %d, it is told: %+v, %t", i, has[w.Name], s, is)
			}
		}
	})
}

// A disk that is being copied grows when that is done, and the guest is told once.
func TestDiskThatIsCopiedGrowsLater(t *testing.T) {
	sized := func(size runnerconfig.Bytes) *runnerconfig.Config {
		c := config(1, 0, 7)
		c.Runner.VM.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveRaw, Name: "disk0", File: "/disk0", Size: size}}
		return c
	}
	started, wanted := sized(1<<20), sized(2<<20)
	steps := func(node string) (n int, said string) {
		d := live.Decide(live.Input{
			Config: wanted, Machine: live.Machine{Started: started, RAM: 7, GrowsDisks: true}, Memory: live.Start(started), Now: time.Now(),
			Observed: live.Observed{RunState: "running", Disks: []live.Disk{{ID: "disk0", Node: node, Size: 1 << 20}}},
		})
		for _, s := range d.Steps {
			if _, is := s.(live.GrowDisk); is {
				n++
			}
		}
		return n, fmt.Sprint(d.Conditions)
	}
	if n, said := steps(qemucmd.OverlayNode(0)); n != 0 || !strings.Contains(said, "it is just being copied, and grows after that") {
		t.Errorf("%d times: %s", n, said)
	}
	if n, said := steps(qemucmd.DiskNode(0)); n != 1 {
		t.Errorf("%d times: %s", n, said)
	}
}

// What was plugged since the start is no change that waits, wherever it is in the list,
// and the disks behind it are those that they were.
func TestPluggedDisksWaitForNothing(t *testing.T) {
	disks := func(names ...string) *runnerconfig.Config {
		c := config(1, 0, 7)
		for _, n := range names {
			c.Runner.VM.Drives = append(c.Runner.VM.Drives, runnerconfig.Drive{Type: runnerconfig.DriveRaw, Name: n, File: "/" + n, Size: 1 << 20})
		}
		return c
	}
	started := disks("a", "b")
	for _, c := range []struct {
		wanted *runnerconfig.Config
		waits  bool
	}{
		{disks("a", "b", "new"), false}, {disks("a", "new", "b"), false}, {disks("a", "b"), false}, {disks("a", "b", "other"), true}, {disks("a", "new"), true},
	} {
		c.wanted.Runner.VM.Drives[1].Size = 2 << 20
		d := live.Decide(live.Input{
			Config: c.wanted, Machine: live.Machine{Started: started, RAM: 7, GrowsDisks: true}, Memory: live.Start(started), Now: time.Now(),
			Observed: live.Observed{RunState: "running", Disks: []live.Disk{
				{ID: "disk0", Node: qemucmd.DiskNode(0), Size: 1 << 20}, {ID: "disk1", Node: qemucmd.DiskNode(1), Size: 2 << 20},
				{ID: qemucmd.PluggedID("new"), Node: qemucmd.PluggedNode(0), Size: 1 << 20},
			}},
		})
		for _, said := range d.Conditions {
			if said.Type == live.RestartRequired && (said.Status == live.True) != c.waits {
				t.Errorf("%v: %s", c.wanted.Runner.VM.Drives, said.Message)
			}
		}
	}
}
