package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A volume that was restored from a snapshot becomes the disk as it is, and grows. What
// has no disk, is of another format than was said, or refers to something is refused for
// good, and nothing is written to it.
func TestRestoredDisks(t *testing.T) {
	dir, disk := deviceImages(t)
	image := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	// What a guest can write to its raw disk: an image that refers to a file.
	refers := bytes.Clone(image("qcow2"))
	refers[15], refers[19] = 0xc8, 4 // the offset and the length of the name of a backing file
	copy(refers[0xc8:], "/etc")
	for name, c := range map[string]struct {
		content        []byte
		record, format string
		size           int64
		says           string
	}{
		"raw":                         {disk, `{"disk":"u0"}`, "raw", 4 << 20, ""},
		"qcow2":                       {image("qcow2"), `{"disk":"u0"}`, "qcow2", 3 << 20, ""},
		"of a claim of somebody":      {disk, "", "raw", 4 << 20, ""},
		"once more":                   {disk, `{"disk":"u1"}`, "raw", 4 << 20, ""},
		"an empty volume":             {nil, "", "raw", 0, "there is no file disk.img: the volume has nothing of a disk"},
		"a larger disk":               {append(bytes.Clone(disk), make([]byte, 2<<20)...), "", "raw", 0, "more than the 4194304 asked for"},
		"raw that looks like qcow2":   {image("qcow2"), "", "raw", 0, "it is raw, and looks like qcow2"},
		"raw that refers to a file":   {refers, "", "raw", 0, "it is raw, and looks like qcow2"},
		"qcow2 that is raw":           {disk, "", "qcow2", 0, "it is to be qcow2, and looks like raw"},
		"qcow2 that refers to a file": {refers, "", "qcow2", 0, "backing file"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 4 << 20, Restored: &runnerconfig.ImportRestored{Format: c.format}}
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
			now, _ := os.ReadFile(job.File)
			if c.says != "" {
				if !strings.Contains(got.Error, c.says) || !got.Final || !bytes.Equal(now, c.content) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got != (runnerconfig.Imported{Format: c.format, Size: c.size}) || recorded(job) != "u1" || !bytes.HasPrefix(now, c.content) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The file of a volume is none that it only names.
func TestRestoredLinks(t *testing.T) {
	dir, _ := deviceImages(t)
	job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 4 << 20, Restored: &runnerconfig.ImportRestored{Format: "raw"}}
	if err := os.Symlink(filepath.Join(dir, "raw"), job.File); err != nil {
		t.Fatal(err)
	}
	if got := runImport(t, job); !got.Final || !strings.Contains(got.Error, "nothing of a disk") || recorded(job) != "" {
		t.Errorf("%+v", got)
	}
}

// A block device that was restored is left as it is.
func TestRestoredDevices(t *testing.T) {
	dir, disk := deviceImages(t)
	qcow2, err := os.ReadFile(filepath.Join(dir, "qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	last := make([]byte, 4<<20)
	last[len(last)-1] = 1
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"a disk":                 {disk, ""},
		"one with a byte at all": {last, ""},
		"an empty volume":        {nil, "all zeros: the volume has nothing of a disk"},
		"one that is being made": {headOf(runnerconfig.Import{Disk: "u0"}), "has a part of it"},
		"what looks like qcow2":  {qcow2, "it is raw, and looks like qcow2"},
	} {
		t.Run(name, func(t *testing.T) {
			job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "device"), Size: 4 << 20, Device: true, Restored: &runnerconfig.ImportRestored{Format: "raw"}}
			before := make([]byte, 4<<20)
			copy(before, c.content)
			if err := os.WriteFile(job.File, before, 0o600); err != nil {
				t.Fatal(err)
			}
			got := runImport(t, job)
			if now, err := os.ReadFile(job.File); err != nil || !bytes.Equal(now, before) {
				t.Errorf("it was written to: %v", err)
			}
			switch {
			case c.says != "" && (!strings.Contains(got.Error, c.says) || !got.Final):
				t.Errorf("%+v", got)
			case c.says == "" && got != (runnerconfig.Imported{Format: "raw", Size: 4 << 20}):
				t.Errorf("%+v", got)
			}
		})
	}
}
