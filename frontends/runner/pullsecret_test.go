package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The credentials of a pull secret are those of the directory that the pod has them in.
// They are told nowhere.
func TestImportWithPullSecret(t *testing.T) {
	const user, password = "puller", "s3cret-word"
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "who is there?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	content := bytes.Repeat([]byte("\x00disk"), 1000)
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	if err := tw.WriteHeader(&tar.Header{Name: "disk/disk.img", Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := tw.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/disks/tiny:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithContext(t.Context()), remote.WithAuth(&authn.Basic{Username: user, Password: password})); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	for given, want := range map[string]string{"": "401", dir: ""} {
		t.Setenv("DOCKER_CONFIG", given)
		job := runnerconfig.Import{Disk: "u1", File: filepath.Join(t.TempDir(), "disk.img"), Size: 1 << 20, Image: &runnerconfig.DriveImage{Source: "oci://" + ref.Name()}}
		text, err := job.Encode()
		if err != nil {
			t.Fatal(err)
		}
		last := filepath.Join(t.TempDir(), "last words")
		var out bytes.Buffer
		code := importDisk(text, last, &out, &out)
		said, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		got := runnerconfig.ParseImported(string(said))
		if (code == 0) != (want == "") || !strings.Contains(strings.ToLower(got.Error), want) && !strings.Contains(got.Error, "UNAUTHORIZED") {
			t.Errorf("with %q: %d, %+v\n%s", given, code, got, &out)
		}
		if now, err := os.ReadFile(job.File); want == "" && (err != nil || !bytes.HasPrefix(now, content)) {
			t.Errorf("%v, %d bytes", err, len(now))
		}
		if all := out.String() + string(said); strings.Contains(all, password) || strings.Contains(all, user) {
			t.Errorf("the credentials are told: %s", all)
		}
	}
}
