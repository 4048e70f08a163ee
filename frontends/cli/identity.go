package main

import (
	"slices"
	"strings"
)

// keptReport is a file that keeps what the guest depends on, beside its disks.
type keptReport struct {
	File string `json:"file"`
	// Holds says what is in it, for people.
	Holds string `json:"holds"`
	Size  int64  `json:"size"`
}

// holds says what a file with a machine's identity has in it.
func holds(name string) string {
	switch {
	case name == "uuid.txt":
		return "UUID"
	case name == "machine.json":
		return "machine type, firmware, disk formats"
	case name == "machine.tmpl":
		return "machine template"
	case strings.HasPrefix(name, "fw-vars."):
		return "UEFI variables"
	case strings.HasPrefix(name, "tpm2-"):
		return "TPM state"
	}
	return "" // a lock
}

// kept lists the files with a machine's identity.
func (m *machine) kept() ([]keptReport, error) {
	files, err := machineFiles(m.machine)
	if err != nil {
		return nil, err
	}
	var out []keptReport
	for _, f := range files {
		if h := holds(f.name); f.kind == identityFile && h != "" {
			out = append(out, keptReport{File: f.name, Holds: h, Size: f.size})
		}
	}
	slices.SortStableFunc(out, func(a, b keptReport) int { return strings.Compare(a.Holds, b.Holds) })
	return out, nil
}

func (r *machineReport) keptRows() [][]string {
	var rows [][]string
	for _, k := range r.Kept {
		rows = append(rows, []string{k.Holds, k.File, size(k.Size)})
	}
	return rows
}
