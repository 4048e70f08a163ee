package inspect

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

// WriteText writes the report for people: first the single properties, with what the manifest wants
// beside them, then a table of each kind of device.
func (r *Report) WriteText(w io.Writer) error {
	name := r.Name
	if r.Namespace != "" {
		name = host.FullName(r.Namespace, r.Name)
	}
	rows := [][]string{{"Machine", textout.OrNone(name)}, {"UUID", textout.OrNone(r.UUID)}, {"Status", string(r.Status)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("Guest", string(r.RunState))
	add("Message", r.Message)
	if r.Started != nil {
		add("Up", duration.HumanDuration(time.Duration(r.UptimeSeconds)*time.Second))
	}
	if n := r.GuestPanics; n > 0 {
		add("Guest panics", fmt.Sprint(n))
	}
	add("QEMU", r.Versions.QEMU)
	add("Runner", r.Versions.Runner)
	rows = append(rows, r.Guest.rows()...)
	if err := textout.Properties(w, rows); err != nil {
		return err
	}
	if err := textout.Section(w, []string{"PROPERTY", "ACTUAL", "MANIFEST"}, r.comparison()); err != nil {
		return err
	}
	if err := textout.Section(w, []string{"DISK", "FILE", "FORMAT", "SIZE", "TAKEN", "ACCESS", "MANIFEST"}, r.diskRows()); err != nil {
		return err
	}
	if err := textout.Section(w, []string{"NETWORK", "MODEL", "MAC", "BACKEND", "MANIFEST"}, r.networkRows()); err != nil {
		return err
	}
	var shares [][]string
	for _, f := range r.Shares {
		access := "read-write"
		if f.ReadOnly {
			access = "read-only"
		}
		shares = append(shares, []string{f.Tag, f.Dir, access, f.Protocol})
	}
	if err := textout.Section(w, []string{"SHARE", "FOLDER", "ACCESS", "PROTOCOL"}, shares); err != nil {
		return err
	}
	var agents [][]string
	for _, a := range r.Agents {
		state := "not connected"
		if a.Connected {
			state = "connected"
		}
		agents = append(agents, []string{a.Name, state})
	}
	if err := textout.Section(w, []string{"AGENT", "STATE"}, agents); err != nil {
		return err
	}
	if err := textout.Section(w, []string{"INTERFACE", "MAC", "ADDRESSES"}, r.Guest.interfaceRows()); err != nil {
		return err
	}
	if err := textout.Section(w, []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, conditionRows(r.Conditions, r.now)); err != nil {
		return err
	}
	return textout.Section(w, []string{"KEPT", "FILE", "SIZE"}, r.keptRows())
}

func (r *Report) comparison() [][]string {
	var rows [][]string
	add := func(name, actual, manifest string) {
		if r.Wanted == nil {
			manifest = ""
		}
		if actual != "" || manifest != "" {
			rows = append(rows, []string{name, textout.OrNone(actual), manifest})
		}
	}
	want := r.Wanted
	if want == nil {
		want = &Wanted{}
	}
	add("Machine type", r.Versions.MachineType, textout.OrNone(want.MachineType))
	add("Accelerator", r.Versions.Accelerator, string(want.Accelerator))
	var plugged, possible, actual, maximum string
	if r.CPUs != nil {
		plugged, possible = strconv.Itoa(r.CPUs.Plugged), strconv.Itoa(r.CPUs.Possible)
	}
	if r.Memory != nil {
		actual, maximum = textout.Size(r.Memory.Actual), textout.Size(r.Memory.Maximum)
	}
	add("CPUs", plugged, strconv.Itoa(want.CPUs.Plugged))
	add("CPUs possible", possible, strconv.Itoa(want.CPUs.Possible))
	add("Memory", actual, textout.Size(want.Memory.Actual))
	add("Memory maximum", maximum, textout.Size(want.Memory.Maximum))
	for _, row := range r.displayRows(want.Displays) {
		add("Display", row[0], row[1])
	}
	return rows
}

func (r *Report) diskRows() [][]string {
	var rows [][]string
	seen := map[string]bool{}
	for _, d := range r.Disks {
		seen[d.Device] = true
		access := "read-write"
		if d.ReadOnly {
			access = "read-only"
		}
		row := []string{d.Device, "<no medium>", textout.None, textout.None, textout.None, textout.None, r.wantedDisk(d.Device)}
		if d.Medium {
			row = []string{d.Device, d.File, d.Format, textout.Size(d.VirtualSize), textout.Size(d.ActualSize), access, r.wantedDisk(d.Device)}
			if d.Node == "" { // the image is not open
				row[2], row[3], row[5] = textout.None, textout.None, textout.None
			}
			if d.Problem != "" {
				row[1], row[4] = d.Problem, textout.None
			}
		}
		rows = append(rows, row)
	}
	if r.Wanted != nil {
		for _, d := range r.Wanted.Disks {
			if !seen[d.Device] {
				rows = append(rows, []string{d.Device, textout.None, textout.None, textout.None, textout.None, textout.None, r.wantedDisk(d.Device)})
			}
		}
	}
	return rows
}

func (r *Report) wantedDisk(device string) string {
	if r.Wanted == nil {
		return ""
	}
	i := slices.IndexFunc(r.Wanted.Disks, func(d WantedDisk) bool { return d.Device == device })
	switch {
	case i < 0:
		return textout.None
	case r.Wanted.Disks[i].Name == "":
		return textout.OrNone(r.Wanted.Disks[i].Image)
	case r.Wanted.Disks[i].Size > 0:
		return r.Wanted.Disks[i].Name + " " + textout.Size(r.Wanted.Disks[i].Size)
	}
	return r.Wanted.Disks[i].Name
}

func (r *Report) networkRows() [][]string {
	var rows [][]string
	wanted := func(device string) string {
		if r.Wanted == nil {
			return ""
		}
		i := slices.IndexFunc(r.Wanted.Networks, func(n WantedNetwork) bool { return n.Device == device })
		if i < 0 {
			return textout.None
		}
		n := &r.Wanted.Networks[i]
		return strings.Join(strings.Fields(n.Type+" "+n.MAC+" "+n.Forwards()), " ")
	}
	for _, n := range r.Networks {
		rows = append(rows, []string{n.Device, n.Model, n.MAC, textout.OrNone(n.Backend), wanted(n.Device)})
	}
	if len(rows) == 0 && r.Wanted != nil {
		for _, n := range r.Wanted.Networks {
			rows = append(rows, []string{n.Device, textout.None, textout.None, textout.None, wanted(n.Device)})
		}
	}
	return rows
}
