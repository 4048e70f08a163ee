package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/imageinspect"
)

// writeImage writes the report on an image for people.
func writeImage(w io.Writer, r *imageinspect.Report) error {
	rows := [][]string{
		{"Path", r.Path},
		{"Format", string(r.Format)},
		{"Virtual size", bytesOf(r.VirtualSize)},
		{"File size", bytesOf(r.FileSize)},
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	if r.AllocatedSize > 0 {
		add("Space taken", bytesOf(r.AllocatedSize))
	}
	add("Refused as a disk", r.Refused)
	if q := r.Qcow2; q != nil {
		add("qcow2 version", strconv.Itoa(q.Version))
		add("Cluster size", size(q.ClusterSize))
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
	if err := properties(w, rows); err != nil {
		return err
	}
	if t := r.PartitionTable; t != nil && len(t.Partitions) > 0 {
		var parts [][]string
		for _, p := range t.Partitions {
			f := imageinspect.FileSystem{}
			if p.FileSystem != nil {
				f = *p.FileSystem
			}
			parts = append(parts, []string{strconv.Itoa(p.Index), size(p.Start), size(p.Size), orNone(p.Label), orNone(f.Type), orNone(f.Label), orNone(f.UUID), p.Type})
		}
		fmt.Fprintln(w)
		if err := table(w, []string{"PARTITION", "START", "SIZE", "NAME", "FILE SYSTEM", "LABEL", "UUID", "TYPE"}, parts); err != nil {
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
			fmt.Fprintf(w, "\n--- %s ---\n%s", d.name, printableText(*d.text))
			if !strings.HasSuffix(*d.text, "\n") {
				fmt.Fprintln(w)
			}
		}
	}
	for i, note := range r.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Note: %s\n", printableCell(note))
	}
	return nil
}

// bytesOf shows a size for people and exactly.
func bytesOf(n int64) string {
	if s := size(n); s != strconv.FormatInt(n, 10) {
		return fmt.Sprintf("%s (%d bytes)", s, n)
	}
	return fmt.Sprintf("%d bytes", n)
}
