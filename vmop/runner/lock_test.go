package runner

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Who has a machine's lock has the file that is there: another delete may remove
// it between its opening and its locking.
func TestLockOfARemovedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LockFile)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5000 {
				f, err := Lock(dir)
				if err != nil {
					continue // another has it
				}
				mine, err := f.Stat()
				if err != nil {
					t.Error(err)
				}
				now, err := os.Stat(path)
				if err != nil || !os.SameFile(mine, now) {
					t.Errorf("what was locked is not there: %v", err)
				}
				if err := errors.Join(os.Remove(path), f.Close()); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	all.Wait()
}
