package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runner"
)

// What a first start has made goes with it, and nothing else: not what was there, not what
// somebody has put there meanwhile, and nothing once another start may have used it.
func TestUndo(t *testing.T) {
	for _, c := range []struct {
		name string
		// another start has ended since this one, was before it, or has the machine now.
		another, before, holds bool
		want                   []string
	}{
		{name: "undone", want: []string{"definition.json", "given-disk.img", "lock", "manifest.yaml", "mine.img", "notes.txt", "run.log", "state.json"}},
		{name: "another start has ended", another: true},
		{name: "the machine was started before", before: true},
		{name: "another start has it", holds: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			d := Directories{Data: filepath.Join(root, "machines", "lab", "web"), Runtime: filepath.Join(root, "run")}
			write := func(names ...string) {
				t.Helper()
				for _, name := range names {
					if err := os.WriteFile(filepath.Join(d.Data, name), []byte("{}"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := os.MkdirAll(d.Data, 0o700); err != nil {
				t.Fatal(err)
			}
			write("manifest.yaml", "definition.json", "given-disk.img")
			if c.before {
				write("uuid.txt", "machine.json")
			}
			j := &Job{Directories: d, Definition: Definition{Used: map[string]string{"data-disk": filepath.Join(d.Data, "data-disk.img")}}}
			var err error
			if j.Untouched, err = d.untouched(); err != nil || (j.Untouched == nil) != c.before {
				t.Fatalf("%+v, %v", j.Untouched, err)
			}
			// What the start leaves, and somebody else meanwhile.
			if err := j.Definition.write(d); err != nil {
				t.Fatal(err)
			}
			write("uuid.txt", "machine.json", "fw-vars.efi.fd", "data-disk.img", "run.log", "lock", "mine.img", "notes.txt")
			last := runner.State{Name: "web", Phase: runner.PhaseStopped, Since: time.Now()}
			kept := last
			if c.another {
				kept.Since = last.Since.Add(time.Second)
			}
			(&runner.StateFile{Path: d.StateFile()}).State(kept)
			if c.holds {
				lock, err := runner.Lock(d.Data)
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Close()
			}
			all := entryNames(t, d.Data)
			if c.want == nil {
				c.want = all
			}
			if err := j.undo([]string{filepath.Join(d.Data, "data-disk.img"), filepath.Join(d.Data, "given-disk.img"), "/elsewhere/mine.img"}, last); err != nil {
				t.Fatal(err)
			}
			if got := entryNames(t, d.Data); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			def, err := d.Definition()
			if undone := !slices.Equal(all, c.want); err != nil || (len(def.Used) == 0) != undone {
				t.Errorf("%+v, %v", def, err)
			}
		})
	}
}

func entryNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
