package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/imageinspect"
)

// What was downloaded and not unpacked is no disk, unless the machine has had it.
func TestPackedFileIsNoDisk(t *testing.T) {
	dir := t.TempDir()
	packed, empty := filepath.Join(dir, "debian.img.gz"), filepath.Join(dir, "empty.img")
	if err := errors.Join(os.WriteFile(packed, []byte("\x1f\x8b\x08\x00rest"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"system": packed, "data": empty, "gone": filepath.Join(dir, "gone"), "fifo": "/dev/null"}
	err := checkUploads(given, Definition{})
	if !errors.Is(err, imageinspect.ErrCompressed) || !strings.HasPrefix(err.Error(), `disk "system": `+packed+": it is compressed (gzip)") {
		t.Error(err)
	}
	if err := checkUploads(given, Definition{Used: map[string]string{"system": packed}}); err != nil {
		t.Errorf("a disk that the machine has had: %v", err)
	}
}
