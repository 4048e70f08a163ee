package inspect

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/imageinspect"
)

// WriteImage writes the report on an image as text.
func WriteImage(w io.Writer, r *imageinspect.Report) error {
	if r == nil {
		return errors.New("there is no report: the pointer is nil")
	}
	rows := [][]string{
		{"Path", r.Path},
		{"Format", string(r.Format)},
		{"Virtual size", textout.Bytes(r.VirtualSize)},
		{"File size", textout.Bytes(r.FileSize)},
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	if r.AllocatedSize > 0 {
		add("Space taken", textout.Bytes(r.AllocatedSize))
	}
	add("Refused as a disk", r.Refused)
	if q := r.Qcow2; q != nil {
		add("qcow2 version", strconv.Itoa(q.Version))
		add("Cluster size", textout.Size(q.ClusterSize))
		add("Backing file", q.BackingFile)
		add("Encryption", q.Encryption)
		add("Features", strings.Join(q.IncompatibleFeatures, ", "))
	}
	if f := r.FileSystem; f != nil {
		add("File system", f.Type)
		add("Label", f.Label)
		add("UUID", f.UUID)
	}
	if t := r.PartitionTable; t != nil {
		add("Partition table", t.Type+" "+t.ID)
	}
	if err := textout.Properties(w, rows); err != nil {
		return err
	}
	if t := r.PartitionTable; t != nil && len(t.Partitions) > 0 {
		var parts [][]string
		for _, p := range t.Partitions {
			f := imageinspect.FileSystem{}
			if p.FileSystem != nil {
				f = *p.FileSystem
			}
			parts = append(parts, []string{strconv.Itoa(p.Index), textout.Size(p.Start), textout.Size(p.Size), textout.OrNone(p.Label), textout.OrNone(f.Type), textout.OrNone(f.Label), textout.OrNone(f.UUID), p.Type})
		}
		fmt.Fprintln(w)
		if err := textout.Table(w, []string{"PARTITION", "START", "SIZE", "NAME", "FILE SYSTEM", "LABEL", "UUID", "TYPE"}, parts); err != nil {
			return err
		}
	}
	if n := r.NoCloud; n != nil {
		for _, d := range []struct {
			name string
			text *string
		}{{"meta-data", n.MetaData}, {"user-data", n.UserData}, {"network-config", n.NetworkConfig}} {
			if d.text == nil {
				fmt.Fprintf(w, "\nThe seed has no %s.\n", d.name)
				continue
			}
			fmt.Fprintf(w, "\n--- %s ---\n%s", d.name, textout.Printable(*d.text))
			if !strings.HasSuffix(*d.text, "\n") {
				fmt.Fprintln(w)
			}
		}
	}
	for i, note := range r.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Note: %s\n", textout.Cell(note))
	}
	return nil
}
