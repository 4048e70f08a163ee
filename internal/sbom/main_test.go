package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestModulesAreListed(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}, Deps: []*debug.Module{
		{Path: "b.example/x", Version: "v2.0.0", Sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
		{Path: "a.example/y", Version: "v1.0.0", Replace: &debug.Module{Path: "a.example/z", Version: "v1.0.1"}},
	}}
	got := describe("vm-operator", info)
	var refs []string
	for _, c := range got.Components {
		refs = append(refs, c.Ref)
	}
	if want := "pkg:golang/a.example/z@v1.0.1 pkg:golang/b.example/x@v2.0.0 pkg:golang/std@1.26.0"; strings.Join(refs, " ") != want {
		t.Errorf("got %v", refs)
	}
	if p := got.Components[1].Properties; len(p) != 1 || !strings.HasPrefix(p[0].Value, "h1:47DE") {
		t.Errorf("%+v", p)
	}
}

// A program that was built here can be listed.
func TestARealProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(program, &out); err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(out.Bytes(), &b); err != nil || b.Format != "CycloneDX" || len(b.Components) == 0 {
		t.Errorf("%v: %s", err, out.String())
	}
}
