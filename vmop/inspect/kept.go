package main

import "github.com/vmop/sdk/vmop/host"

// keptReport is a file that keeps what the guest depends on, beside its disks.
type keptReport struct {
	File string `json:"file"`
	// Holds says what is in it, for people.
	Holds string `json:"holds"`
	Size  int64  `json:"size"`
}

// kept lists the files with a machine's identity.
func kept(m *host.Machine) ([]keptReport, error) {
	files, err := m.Identity()
	if err != nil {
		return nil, err
	}
	var out []keptReport
	for _, f := range files {
		out = append(out, keptReport{File: f.Name, Holds: f.Holds, Size: f.Size})
	}
	return out, nil
}

func (r *machineReport) keptRows() [][]string {
	var rows [][]string
	for _, k := range r.Kept {
		rows = append(rows, []string{k.Holds, k.File, size(k.Size)})
	}
	return rows
}
