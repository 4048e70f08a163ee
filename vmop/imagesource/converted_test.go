package imagesource_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
)

// What is converted there and back is what it was, whatever a guest has written to it, and
// what refers to another file is refused.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	raw, qcow2, back, backed := filepath.Join(dir, "a:b.raw"), filepath.Join(dir, "b.qcow2"), filepath.Join(dir, "c.raw"), filepath.Join(dir, "d.qcow2")
	content := make([]byte, 4<<20)
	copy(content, "QFI\xfb\x00\x00\x00\x03, says a guest")
	copy(content[3<<20:], "data")
	if err := os.WriteFile(raw, content, 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := func(int64, int64) {}
	if err := imagesource.Convert(t.Context(), raw, imageinspect.FormatRaw, qcow2, imageinspect.FormatQcow2, quiet); err != nil {
		t.Fatal(err)
	}
	if err := imagesource.Convert(t.Context(), qcow2, imageinspect.FormatQcow2, back, imageinspect.FormatRaw, quiet); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := imagesource.Convert(t.Context(), qcow2, imageinspect.FormatQcow2, back, imageinspect.FormatRaw, quiet); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", "-b", back, "-F", "raw", backed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, says := range map[string]string{backed: "backing", plain: "it is raw, and not qcow2", back: "invalid image header"} {
		to := filepath.Join(dir, "none")
		if err := imagesource.Convert(t.Context(), from, imageinspect.FormatQcow2, to, imageinspect.FormatRaw, quiet); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", from, err)
		}
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something is left: %v", from, err)
		}
	}
}
