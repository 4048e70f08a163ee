package imagebases

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bases")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A name leads to the image that the registry has under it, and everything else of the
// file stays.
func TestRenew(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	push := func(tag string) string {
		t.Helper()
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	old, other := push(address+"/library/debian:trixie-slim"), push(address+"/library/alpine:3.23")
	text := "# What stays.\n\ndebian:trixie-slim " + address + "/library/debian@" + old + "\nalpine:3.23 " + address + "/library/alpine@" + other + "\n"
	file := write(t, text)
	if changed, err := Renew(t.Context(), file); err != nil || changed != nil {
		t.Errorf("what is the newest was renewed: %v, %v", changed, err)
	}
	renewed := push(address + "/library/debian:trixie-slim")
	changed, err := Renew(t.Context(), file)
	if err != nil || len(changed) != 1 || changed[0].Image.DigestStr() != renewed {
		t.Errorf("renewed %v, %v; want %s", changed, err, renewed)
	}
	got, err := os.ReadFile(file)
	if want := strings.Replace(text, old, renewed, 1); err != nil || string(got) != want {
		t.Errorf("the file is, %v\n%s", err, got)
	}
	if bases, err := Read(file); err != nil || len(bases) != 2 || bases[0].Name != "debian:trixie-slim" {
		t.Errorf("read %v, %v", bases, err)
	}

	missing := "debian:no-such " + address + "/library/debian@" + old + "\n"
	file = write(t, missing)
	if _, err := Renew(t.Context(), file); err == nil || !strings.Contains(err.Error(), file+":1: which image ") {
		t.Errorf("a tag that the registry does not have: %v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != missing {
		t.Errorf("the file was changed: %s, %v", got, err)
	}
}

func TestWrongBasesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"# a\ndebian:trixie-slim docker.io/library/debian:trixie-slim\n": ":2: debian:trixie-slim: write an image with its digest",
		"debian:trixie-slim\n":     `:1: found "debian:trixie-slim"; write a name and an image`,
		"debian:trixie-slim a b\n": `:1: found "debian:trixie-slim a b"`,
		"debian docker.io/library/debian@sha256:" + strings.Repeat("0", 64) + "\n": "debian has no tag",
	} {
		if _, err := Renew(t.Context(), write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
