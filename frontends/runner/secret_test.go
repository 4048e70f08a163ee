package main

import (
	"os"
	"path/filepath"
	"testing"
)

// In a volume the secret is beside the link, elsewhere beside the file.
func TestSecretDir(t *testing.T) {
	plain, volume, link := t.TempDir(), t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(plain, "config.yaml"), nil, 0o600),
		os.Mkdir(filepath.Join(volume, "..1"), 0o700),
		os.WriteFile(filepath.Join(volume, "..1", "config.yaml"), nil, 0o600),
		os.Symlink("..1", filepath.Join(volume, "..data")),
		os.Symlink("..data/config.yaml", filepath.Join(volume, "config.yaml")),
		os.Symlink(filepath.Join(plain, "config.yaml"), filepath.Join(link, "config.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{plain: plain, volume: volume, link: plain} {
		if got := secretDir(filepath.Join(dir, "config.yaml")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
