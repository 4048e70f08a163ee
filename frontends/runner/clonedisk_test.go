package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A volume that is a clone becomes the disk as it is, and grows. One that was left empty,
// is another one's, or is not what the source is by now, does not pass for a clone: it is
// copied, and what is somebody else's is left alone.
func TestClones(t *testing.T) {
	dir, disk := deviceImages(t)
	other := bytes.Clone(disk)
	other[2<<20+5000] = 1 // what a guest wrote, before or after
	const source, mine = `{"disk":"u0"}`, `{"disk":"u1"}`
	for name, c := range map[string]struct {
		content        []byte
		record, format string
		cloned         bool
		says           string
	}{
		"a clone":                      {disk, source, "raw", true, ""},
		"a clone that has grown":       {append(bytes.Clone(disk), make([]byte, 1<<20)...), source, "raw", true, ""},
		"a volume that was left empty": {nil, "", "raw", false, ""},
		"an empty one of qcow2":        {nil, "", "qcow2", false, ""},
		"another content":              {other, source, "raw", false, ""},
		"a part of it":                 {disk[:1<<20], source, "raw", false, ""},
		"a record without a disk":      {nil, source, "raw", false, ""},
		"one that was adopted":         {append(bytes.Clone(disk), make([]byte, 1<<20)...), mine, "raw", false, ""},
		"another one's":                {disk, `{"disk":"u9"}`, "raw", false, "left alone"},
		"nobody's":                     {disk, "", "raw", false, "left alone"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 4 << 20, Copy: &runnerconfig.ImportCopy{File: filepath.Join(dir, c.format), Format: c.format, CloneOf: "u0", Whole: true}}
			if c.content != nil {
				if err := os.WriteFile(job.File, c.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.record != "" {
				if err := os.WriteFile(recordOf(job), []byte(c.record), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := runImport(t, job)
			if c.says != "" {
				if now, err := os.ReadFile(job.File); !strings.Contains(got.Error, c.says) || err != nil || !bytes.Equal(now, c.content) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			size := int64(4 << 20)
			if c.format == "qcow2" {
				size = 3 << 20 // it grows when a machine has it
			}
			if got != (runnerconfig.Imported{Format: c.format, Size: size, Cloned: c.cloned}) || recorded(job) != "u1" {
				t.Errorf("%+v", got)
			}
			now, err := os.ReadFile(job.File)
			if want, werr := os.ReadFile(job.Copy.File); err != nil || werr != nil || !bytes.HasPrefix(now, want) {
				t.Errorf("it is another disk: %v, %v", err, werr)
			}
		})
	}
}

// So it is with block devices, whose beginning alone tells of somebody else. What is
// behind the disk is zero in any case.
func TestClonesOfDevices(t *testing.T) {
	dir, disk := deviceImages(t)
	other := bytes.Clone(disk)
	other[2<<20+5000] = 1
	for name, c := range map[string]struct {
		content []byte
		cloned  bool
		says    string
	}{
		"a clone":         {disk, true, ""},
		"one left empty":  {nil, false, ""},
		"another content": {other, false, ""},
		"somebody else's": {bytes.Repeat([]byte{0xee}, 3<<20), false, "left alone"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "device"), Size: 4 << 20, Device: true, Copy: &runnerconfig.ImportCopy{File: filepath.Join(dir, "raw"), Format: "raw", CloneOf: "u0", Whole: true}}
			before := make([]byte, 4<<20)
			copy(before, c.content)
			copy(before[len(disk)+5000:], "behind")
			if err := os.WriteFile(job.File, before, 0o600); err != nil {
				t.Fatal(err)
			}
			got := runImport(t, job)
			now, err := os.ReadFile(job.File)
			if err != nil {
				t.Fatal(err)
			}
			if c.says != "" {
				if !strings.Contains(got.Error, c.says) || !bytes.Equal(now, before) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got != (runnerconfig.Imported{Format: "raw", Size: 4 << 20, Cloned: c.cloned}) || !bytes.Equal(now, append(bytes.Clone(disk), make([]byte, 1<<20)...)) {
				t.Errorf("%+v", got)
			}
		})
	}
}
