package dialect_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t rapid.TB, data []byte) []spec.Object {
	t.Helper()
	objects, err := spec.Load("in.yaml", data, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestGolden compares machines, notes and errors with what stands behind the
// manifest in each file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := archive.Files[0]
			got := golden(t, in.Data)
			if *update {
				archive.Files = append([]txtar.File{in}, got...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := txtar.Format(&txtar.Archive{Files: archive.Files[1:]})
			if diff := cmp.Diff(string(want), string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
				t.Errorf("-want +got, rewrite with -update:\n%s", diff)
			}
		})
	}
}

func golden(t *testing.T, data []byte) []txtar.File {
	var out []txtar.File
	add := func(name, text string) {
		if text != "" {
			out = append(out, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	translated, err := dialect.Translate(load(t, data))
	var notes, problems strings.Builder
	n := map[string]int{}
	for _, made := range translated.All() {
		text, err := sigsyaml.Marshal(made.Typed)
		if err != nil {
			t.Fatal(err)
		}
		kind := made.Typed.GetObjectKind().GroupVersionKind().Kind
		short := map[string]string{
			spec.KindVirtualMachine: "out", spec.KindClass: "class", spec.KindOperation: "operation", spec.KindDisk: "disk",
			spec.KindImage: "image", spec.KindClusterImage: "clusterimage", spec.KindAttachment: "attachment",
		}[kind]
		add(fmt.Sprintf("%s-%d.yaml", short, n[kind]), string(text))
		n[kind]++
		for _, n := range made.Notes {
			fmt.Fprintln(&notes, n)
		}
		for _, k := range spec.Kinds() {
			k.Default(made.Typed)
			for _, e := range k.Validate(made.Typed) {
				fmt.Fprintf(&problems, "%s: %v\n", made.Typed.GetName(), e)
			}
		}
	}
	for _, n := range translated.LeftOut {
		fmt.Fprintln(&notes, n)
	}
	if err != nil {
		fmt.Fprintln(&problems, err)
	}
	add("notes", notes.String())
	add("problems", problems.String())
	return out
}

// manifests returns the manifests of the golden files, for properties.
func manifests(t rapid.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, archive.Files[0].Data)
	}
	return out
}

// A field that somebody adds anywhere in a machine is named in a note, or in one
// about what it is a part of.
func TestNothingIsLost(t *testing.T) {
	all := manifests(t)
	rapid.Check(t, func(t *rapid.T) {
		var docs []*yaml.Node
		dec := yaml.NewDecoder(bytes.NewReader(all[rapid.IntRange(0, len(all)-1).Draw(t, "manifest")]))
		for {
			var doc yaml.Node
			if dec.Decode(&doc) != nil {
				break
			}
			docs = append(docs, &doc)
		}
		doc := docs[rapid.IntRange(0, len(docs)-1).Draw(t, "document")]
		var maps []*yaml.Node
		collect(doc.Content[0], &maps)
		at := maps[rapid.IntRange(0, len(maps)-1).Draw(t, "mapping")]
		at.Content = append(at.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Value: "somethingNew"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "of-value"})
		data, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		objects := load(t, data)
		translated, err := dialect.Translate(objects)
		if err != nil || len(translated.All()) == 0 {
			return // nothing is made of it, which is told
		}
		var notes []spec.Problem
		var made []any // a machine, and images that it refers to
		for _, m := range translated.All() {
			notes, made = append(notes, m.Notes...), append(made, m.Typed)
		}
		path := place(t, &translated.All()[0].Object, doc)
		if strings.HasPrefix(path, "status.") {
			return // says nothing that anybody wants
		}
		for _, note := range notes {
			if note.Path == path || strings.HasPrefix(path, note.Path+".") || strings.HasPrefix(path, note.Path+"[") {
				return
			}
		}
		text, _ := json.Marshal(made)
		if !strings.Contains(string(text), "of-value") {
			t.Fatalf("%s is neither in the machine nor in a note", path)
		}
	})
}

// collect returns the mappings of a document.
func collect(n *yaml.Node, out *[]*yaml.Node) {
	if n.Kind == yaml.MappingNode {
		*out = append(*out, n)
	}
	for _, c := range n.Content {
		collect(c, out)
	}
}

// place is the path of the field that was added.
func place(t *rapid.T, o *spec.Object, doc *yaml.Node) string {
	var found string
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i].Value
				next := path + "." + key
				if strings.ContainsAny(key, ".[]/") {
					next = path + "[" + key + "]"
				}
				next = strings.TrimPrefix(next, ".")
				if key == "somethingNew" {
					found = next
				}
				walk(n.Content[i+1], next)
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				walk(c, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(doc.Content[0], "")
	if !o.Written(found) {
		t.Fatalf("%s is not in the object", found)
	}
	return found
}

// The same manifest gives the same machine and the same notes.
func TestDeterministic(t *testing.T) {
	for _, data := range manifests(t) {
		first, err := dialect.Translate(load(t, data))
		for range 20 {
			again, aerr := dialect.Translate(load(t, data))
			a, _ := json.Marshal(first)
			b, _ := json.Marshal(again)
			if !bytes.Equal(a, b) || fmt.Sprint(err) != fmt.Sprint(aerr) || fmt.Sprint(first.LeftOut) != fmt.Sprint(again.LeftOut) {
				t.Fatalf("%s\n%s\n%v\n%v", a, b, err, aerr)
			}
		}
	}
}

// FuzzTranslate holds that nothing that can be loaded panics, and that what
// becomes a machine can be written and loaded again.
func FuzzTranslate(f *testing.F) {
	for _, data := range manifests(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := spec.Load("in.yaml", data, spec.Options{})
		if err != nil {
			return
		}
		translated, _ := dialect.Translate(objects)
		for _, made := range translated.All() {
			text, err := sigsyaml.Marshal(made.Typed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := spec.Load("out.yaml", text, spec.Options{}); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
	})
}
