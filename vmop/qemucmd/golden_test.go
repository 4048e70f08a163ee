package qemucmd_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares whole command lines: testdata/golden/NAME.machine.json is
// built on the generic host, changed by NAME.host.json if that exists. What a
// guest of an existing machine sees changes only with a reviewed golden file.
func TestGolden(t *testing.T) {
	machines, err := filepath.Glob("testdata/golden/*.machine.json")
	if err != nil || len(machines) == 0 {
		t.Fatalf("%v, %v", machines, err)
	}
	for _, file := range machines {
		name := strings.TrimSuffix(filepath.Base(file), ".machine.json")
		t.Run(name, func(t *testing.T) {
			var m qemucmd.Machine
			h := qemucmd.GenericHost()
			readStrict(t, file, &m)
			if host := strings.Replace(file, ".machine.", ".host.", 1); exists(host) {
				readStrict(t, host, &h)
			}
			cmd := mustBuild(t, m, h)
			golden := filepath.Join("testdata", "golden", name)
			compare(t, golden+".sh", cmd.Shell())

			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			cmd.Groups = nil // the arguments are in the other file
			if err := e.Encode(cmd); err != nil {
				t.Fatal(err)
			}
			compare(t, golden+".command.json", out.String())
		})
	}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func readStrict(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: if that is intended, run the test with -update:\n%s", file, diff)
	}
}
