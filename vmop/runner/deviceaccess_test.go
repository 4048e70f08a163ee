package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/asnobody"
)

// A device that belongs to somebody else is explained; one that can be used, and
// one that is missing, are not.
func TestCheckDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkDevice(path, info); err != nil {
		t.Errorf("one's own device: %v", err)
	}
	if err := checkDevice(path+"-gone", info); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing device: %v", err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	asnobody.Do(t, func() { err = checkDevice(path, info) })
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("a device of somebody else: %v", err)
	}
	for _, want := range []string{"permission denied for user ", "with mode 0600", "device_ownership_from_security_context = true"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
