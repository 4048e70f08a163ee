package main

import (
	"encoding/json"
	"os"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// importRecord is stored beside an imported disk and names its owner; it is written before the disk
// gets its name.
type importRecord struct {
	Disk string `json:"disk"`
}

func recordOf(job runnerconfig.Import) string { return job.File + ".import.json" }

// recorded returns the owner of the existing disk by its record, or "".
func recorded(job runnerconfig.Import) string {
	var r importRecord
	data, err := os.ReadFile(recordOf(job))
	if err != nil || json.Unmarshal(data, &r) != nil {
		return ""
	}
	return r.Disk
}

func writeRecord(job runnerconfig.Import) error {
	record, err := json.Marshal(importRecord{Disk: job.Disk})
	if err != nil {
		return err
	}
	return atomicfile.Replace(recordOf(job), record)
}
