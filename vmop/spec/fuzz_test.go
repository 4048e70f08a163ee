package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// FuzzLoad feeds anything to the loader. It must not panic, problems must have
// a place, and what it accepts must be what kubectl reads from the same bytes.
// Run it with -fuzzminimizetime 20x: by default the engine spends a minute on
// shrinking each interesting input.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"testdata", "testdata/problems"} {
		files, err := filepath.Glob(dir + "/*.*")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	for _, s := range []string{
		"a: 0b101\nb: 0o17\nc: 017\nd: 1_000\ne: +5\nf: .5\ng: 5.\nh: 1e3\ni: 0x1F\nj: 2001-01-01\nk: 190:20:30",
		"y: n\non: off\n~: 1", "- 1\n- [a, {b: c}]", "a: !!str 5\nb: !!int \"5\"\nc: !!float 1\nd: !!binary aGk=",
		"a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: {<<: [*x, {b: 2}]}", "? a\n: b", "a: |\n  b\n  c\nd: >-\n  e\n  f\n",
		"{\"a\": 1} {\"b\": 2}", "{\"a\": \"\\ud83d\\ude00\"}", "\"a\\\nb\": 'it''s'", "%YAML 1.1\n---\na: b\n...\n", "a: \x00", "\xff\xfea\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Load("f.yaml", data, Options{Validate: true, Lenient: true})
		if err != nil {
			problems := err.(*LoadError).Problems
			if len(problems) == 0 {
				t.Fatal("an error without problems")
			}
			for _, p := range problems {
				if p.Line < 1 || p.Message == "" || p.File != "f.yaml" {
					t.Fatalf("no place or message: %+v", p)
				}
				if s := p.String(); oneLine(s) != s {
					t.Fatalf("more than one line: %q", s)
				}
			}
		}
		for _, o := range objects {
			if o.Kind == "" || o.APIVersion == "" || o.Line < 1 {
				t.Fatalf("incomplete object: %+v", o)
			}
		}
		compareWithKubectl(t, data)
	})
}

// compareWithKubectl checks the reading of YAML against the library that
// kubectl uses, for documents that both take.
func compareWithKubectl(t *testing.T, data []byte) {
	if !utf8.Valid(data) {
		return
	}
	for _, chunk := range splitYAML(data) {
		// The parser does not tell about a lone "!", which makes a scalar a
		// string. Nobody writes it.
		if regexp.MustCompile(`!([\s,}\]]|$)`).Match(chunk.raw) {
			continue
		}
		doc := parseYAML(chunk)
		if doc.root == nil || len(doc.faults) > 0 || doc.root.weight > 1<<16 {
			continue // the other library takes long for big ones
		}
		theirs, err := yaml.YAMLToJSONStrict(chunk.raw)
		if err != nil {
			continue
		}
		var want, got any
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		ours := doc.root.bytes()
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("no valid JSON: %v\n%s", err, ours)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("read differently (-kubectl +vmop):\n%s\n%q", cmp.Diff(want, got), chunk.raw)
		}
	}
}
