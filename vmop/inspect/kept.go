package inspect

import (
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func kept(m *host.Machine) ([]KeptFile, error) {
	files, err := m.Identity()
	if err != nil {
		return nil, err
	}
	var out []KeptFile
	for _, f := range files {
		out = append(out, KeptFile{File: f.Name, Holds: f.Holds, Size: f.Size})
	}
	return out, nil
}

func (r *Report) keptRows() [][]string {
	var rows [][]string
	for _, k := range r.Kept {
		rows = append(rows, []string{k.Holds, k.File, textout.Size(k.Size)})
	}
	return rows
}
