package asnobody_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmop/sdk/internal/asnobody"
)

// What only its owner may read nobody may not; and the test is who it was afterwards.
func TestNobodyHasNoRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0); err != nil {
		t.Fatal(err)
	}
	before := os.Geteuid()
	var err error
	during := -1
	asnobody.Do(t, func() {
		during = os.Geteuid()
		_, err = os.ReadFile(file)
	})
	if during == 0 || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("user %d: %v", during, err)
	}
	if after := os.Geteuid(); after != before {
		t.Errorf("the test was user %d, and is %d", before, after)
	}
}
