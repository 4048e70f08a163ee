package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every example is valid, and its command line is what it was.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/vm.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			if code, _, stderr := call(t, "validate", file); code != exitOK {
				t.Errorf("validate: exit code %d\n%s", code, stderr)
			}
			code, got, stderr := call(t, "render", file)
			if code != exitOK || stderr != "" {
				t.Fatalf("render: exit code %d\n%s", code, stderr)
			}
			golden(t, name+".txt", got)
		})
	}
}

// golden compares a text with the file that holds it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got (refresh with -update):\n%s", diff)
	}
}

// call runs the program without a standard input.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"vmop-cli"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}
