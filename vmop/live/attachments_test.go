package live_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Disks of other pods come and go as the configuration says, each to a port of its own;
// one that the guest keeps is never closed, what QEMU refuses is not tried for ever, and
// a machine that is as it shall be has nothing to do.
func TestAttachmentsFollow(t *testing.T) {
	const all = 8
	uid := func(i int) string { return fmt.Sprint("uid-", i) }
	rapid.Check(t, func(t *rapid.T) {
		started := config(1, 0, 7)
		in := live.Input{
			Machine:  live.Machine{Started: started, RAM: ram, Ports: rapid.SampledFrom([]int{0, 1, 6, 6, 6}).Draw(t, "ports")},
			Memory:   live.Start(started),
			Observed: live.Observed{RunState: "running"}, Now: time.Unix(1_800_000_000, 0),
		}
		var has []live.Attached
		refuses, keeps := map[string]bool{}, map[string]bool{}
		for i := range all {
			refuses[uid(i)] = rapid.IntRange(0, 3).Draw(t, "QEMU refuses") == 0
			keeps[uid(i)] = rapid.IntRange(0, 3).Draw(t, "the guest keeps") == 0
		}
		at := func(u string) int {
			return slices.IndexFunc(has, func(a live.Attached) bool { return a.UID == u })
		}
		for round := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			wanted := config(1, 0, 7)
			for i := range all {
				if !rapid.Bool().Draw(t, "wanted") {
					continue
				}
				a := runnerconfig.Attachment{UID: uid(i), Name: fmt.Sprint("disk-", i), Detach: rapid.IntRange(0, 2).Draw(t, "detach") == 0}
				switch rapid.IntRange(0, 4).Draw(t, "exported") {
				case 0:
				case 1:
					a.Path = "/disk"
				default:
					a.Address, a.Fingerprint = "10.0.0.1:10809", "f"
				}
				a.Place = rapid.IntRange(0, 6).Draw(t, "place")
				wanted.Runner.VM.Attachments = append(wanted.Runner.VM.Attachments, a)
			}
			in.Config, in.Generation = wanted, round
			var d live.Decision
			settled := false
			for range 200 {
				in.Observed.Attached = slices.Clone(has)
				d = live.Decide(in)
				in.Memory = d.Memory
				asked := false
				for _, s := range d.Steps {
					problem := ""
					switch s := s.(type) {
					case live.PlugDisk:
						asked = true
						if at(s.UID) >= 0 || s.Port >= in.Machine.Ports || s.Serial == "" || slices.ContainsFunc(has, func(a live.Attached) bool { return a.Port == s.Port }) {
							t.Fatalf("%+v, there are %+v", s, has)
						}
						i := slices.IndexFunc(wanted.Runner.VM.Attachments, func(a runnerconfig.Attachment) bool { return a.UID == s.UID })
						if w := wanted.Runner.VM.Attachments[i]; w.Path != s.Path ||
							w.Place > 0 && w.Place <= in.Machine.Ports && s.Port != w.Place-1 && !moves(d, has, w, wanted) {
							t.Fatalf("%+v for %+v, there are %+v", s, w, has)
						}
						if refuses[s.UID] {
							problem = "refused by the model"
						} else {
							has = append(has, live.Attached{UID: s.UID, Port: s.Port})
						}
					case live.UnplugDisk:
						asked = true
						i := at(s.UID)
						if i < 0 {
							t.Fatalf("%+v, there are %+v", s, has)
						}
						if slices.ContainsFunc(wanted.Runner.VM.Attachments, func(a runnerconfig.Attachment) bool { return a.UID == s.UID && !a.Detach }) {
							t.Fatalf("%+v is wanted", s)
						}
						if !keeps[s.UID] {
							has[i].UID = ""
						}
					case live.CloseDisk:
						asked = true
						i := slices.IndexFunc(has, func(a live.Attached) bool { return a.Port == s.Port })
						if i < 0 || has[i].UID != "" {
							t.Fatalf("%+v, there are %+v", s, has)
						}
						has = slices.Delete(has, i, i+1)
					}
					in.Memory = in.Memory.Result(s, problem)
				}
				if asked {
					continue
				}
				if d.Wake.IsZero() {
					settled = true
					break
				}
				in.Now = d.Wake
			}
			if !settled {
				t.Fatalf("it is never done: %+v, %+v", has, d.Attachments)
			}
			told := map[string]live.Attachment{}
			for _, a := range d.Attachments {
				told[a.UID] = a
			}
			for _, a := range wanted.Runner.VM.Attachments {
				is := told[a.UID]
				there := at(a.UID) >= 0
				right := map[live.Phase]bool{
					live.AttachmentAttached: there && !a.Detach, live.AttachmentDetaching: there && a.Detach && keeps[a.UID],
					live.AttachmentDetached: !there && a.Detach,
					live.AttachmentPending:  !there && !a.Detach && (a.Path == "" && a.Address == "" || len(has) == in.Machine.Ports),
					live.AttachmentFailed:   !there && !a.Detach && (in.Machine.Ports == 0 || refuses[a.UID]),
				}
				if (is.Place > 0) != there || there && has[at(a.UID)].Port != is.Place-1 {
					t.Fatalf("it is told to be at place %d, there are %+v", is.Place, has)
				}
				if !right[is.Phase] {
					t.Fatalf("%+v of %+v; there are %+v", is, a, has)
				}
				if is.Message == "" && is.Phase != live.AttachmentAttached && is.Phase != live.AttachmentDetached {
					t.Fatalf("%+v has no message", is)
				}
			}
			for _, a := range has {
				if !keeps[a.UID] && !slices.ContainsFunc(wanted.Runner.VM.Attachments, func(w runnerconfig.Attachment) bool { return w.UID == a.UID && !w.Detach }) {
					t.Fatalf("%+v is still there", a)
				}
			}
		}
	})
}

// moves reports whether an attachment may be at another place than it was before: another
// one is there, or comes there by an earlier step, or is tried again before it, which keeps
// a place for that one.
func moves(d live.Decision, has []live.Attached, a runnerconfig.Attachment, wanted *runnerconfig.Config) bool {
	port := a.Place - 1
	own := slices.IndexFunc(wanted.Runner.VM.Attachments, func(o runnerconfig.Attachment) bool { return o.UID == a.UID })
	plugged := func(uid string) bool {
		return slices.ContainsFunc(d.Steps, func(s live.Step) bool { p, plug := s.(live.PlugDisk); return plug && p.UID == uid })
	}
	return slices.ContainsFunc(has, func(h live.Attached) bool { return h.Port == port }) ||
		slices.ContainsFunc(d.Steps, func(s live.Step) bool {
			p, plug := s.(live.PlugDisk)
			return plug && p.Port == port && p.UID != a.UID
		}) ||
		slices.ContainsFunc(d.Attachments[:own], func(o live.Attachment) bool {
			return o.Phase == live.AttachmentAttaching && !plugged(o.UID)
		})
}

// Disks have the places that they had before, whatever comes first in the configuration,
// and one that has had none takes none of theirs.
func TestAttachmentsKeepTheirPlaces(t *testing.T) {
	c := config(1, 0, 7)
	c.Runner.VM.Attachments = []runnerconfig.Attachment{
		{UID: "new", Name: "new", Path: "/new"}, {UID: "third", Name: "third", Path: "/third", Place: 3}, {UID: "first", Name: "first", Address: "h:1", Fingerprint: "f", Place: 1},
	}
	got := map[string]int{}
	for _, state := range []string{"prelaunch", "running"} {
		d := live.Decide(live.Input{
			Config: c, Machine: live.Machine{Started: c, RAM: ram, Ports: 6}, Memory: live.Start(c),
			Observed: live.Observed{RunState: state}, Now: time.Unix(1_800_000_000, 0),
		})
		clear(got)
		for _, s := range d.Steps {
			if p, plug := s.(live.PlugDisk); plug {
				got[p.UID] = p.Port
			}
		}
		want := map[string]int{"new": 1, "third": 2, "first": 0}
		if state == "prelaunch" {
			delete(want, "first") // the guest would wait for its exporter
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}

// A guest that has not begun to execute does not wait for anybody's disk.
func TestAttachmentsWaitForTheGuest(t *testing.T) {
	c := config(1, 0, 7)
	c.Runner.VM.Attachments = []runnerconfig.Attachment{{UID: "u", Name: "n", Address: "h:1", Fingerprint: "f"}}
	d := live.Decide(live.Input{
		Config: c, Machine: live.Machine{Started: c, RAM: ram, Ports: 6}, Memory: live.Start(c),
		Observed: live.Observed{RunState: "prelaunch"}, Now: time.Unix(1_800_000_000, 0),
	})
	for _, s := range d.Steps {
		if _, plug := s.(live.PlugDisk); plug {
			t.Errorf("%+v", s)
		}
	}
	if len(d.Attachments) != 1 || d.Attachments[0].Phase != live.AttachmentPending {
		t.Errorf("%+v", d.Attachments)
	}
}
