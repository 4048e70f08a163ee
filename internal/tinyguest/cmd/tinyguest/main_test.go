package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrintsPathsAndPutsFiles(t *testing.T) {
	kernel := t.TempDir()
	for _, dir := range []string{"boot", "lib/modules/6.1"} {
		if err := os.MkdirAll(filepath.Join(kernel, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(kernel, "boot", "vmlinuz-6.1"), []byte("cannot be unpacked"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache, out := t.TempDir(), t.TempDir()
	getenv := func(name string) string { return map[string]string{"VMOP_CACHE": cache}[name] }
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"--kernel-package-dir", kernel, "--out", out}, getenv, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	want := "kernel=" + out + "/vmlinux\nbzimage=" + out + "/vmlinuz\ninitrd=" + out + "/initrd\n"
	if stdout.String() != want {
		t.Errorf("printed\n%swant\n%s", &stdout, want)
	}
	if !strings.Contains(stderr.String(), "the kernel stays packed") {
		t.Errorf("did not say that the kernel is packed: %s", &stderr)
	}
	for _, name := range []string{"vmlinux", "vmlinuz", "initrd"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusesUnknownFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"--frob"}, os.Getenv, &stdout, &stderr); err == nil || stdout.Len() != 0 {
		t.Errorf("got %v and %q", err, &stdout)
	}
}
