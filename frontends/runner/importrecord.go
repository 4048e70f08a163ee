package main

import (
	"encoding/json"
	"os"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// importRecord is beside a disk that was made by an import: whose it is, written before
// the disk has its name.
type importRecord struct {
	Disk string `json:"disk"`
}

func recordOf(job runnerconfig.Import) string { return job.File + ".import.json" }

// recorded is whose disk is there by its record, empty if there is none.
func recorded(job runnerconfig.Import) string {
	var r importRecord
	data, err := os.ReadFile(recordOf(job))
	if err != nil || json.Unmarshal(data, &r) != nil {
		return ""
	}
	return r.Disk
}

// writeRecord notes that the disk is the job's.
func writeRecord(job runnerconfig.Import) error {
	record, err := json.Marshal(importRecord{Disk: job.Disk})
	if err != nil {
		return err
	}
	return atomicfile.Replace(recordOf(job), record)
}
