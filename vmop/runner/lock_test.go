package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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

// A machine that has ended is started again while its program starts others: a process that
// is about to execute QEMU has the lock open for a moment, and is no runner.
func TestLockWhileOthersAreStarted(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var starters sync.WaitGroup
	for range 4 {
		starters.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 1000 {
		f, err := Lock(dir)
		if err != nil {
			t.Error(err)
			break
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if n%20 > 0 {
			continue // it looks at all processes
		}
		if holders, err := Holders(dir); err != nil || len(holders) > 0 {
			t.Errorf("holders %v, %v", holders, err)
		}
	}
	close(stop)
	starters.Wait()
}

// Others learn what is done with a machine, until it is locked for something else.
func TestLockFor(t *testing.T) {
	dir := t.TempDir()
	doing := func(want string) {
		t.Helper()
		holders, err := allHolders(dir)
		if err != nil || len(holders) != 1 || holders[0].Doing != want {
			t.Errorf("%+v %v, want %q", holders, err, want)
		}
	}
	lock, err := LockFor(dir, "cloned")
	if err != nil {
		t.Fatal(err)
	}
	doing("cloned")
	if _, err := (&Engine{o: Options{Directories: Directories{Data: dir}}}).endOrphan(t.Context(), dir); !errors.Is(err, ErrLocked) || errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = Lock(dir); err != nil {
		t.Fatal(err)
	}
	doing("")
	for _, text := range []string{"cloned", "%d", "%d ", "%d a\nb", "%d \x1b[2J", "1 cloned", "-1 cloned", strings.Repeat("9", 100)} {
		text = strings.ReplaceAll(text, "%d", strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(filepath.Join(dir, LockFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		doing("")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a process is called does not decide what is read of it.
func TestParentAndAge(t *testing.T) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	parent, age, err := parentAndAge(stat)
	if err != nil || parent != os.Getppid() || age < 0 || age > time.Hour {
		t.Errorf("%q is %d, %v, %v", stat, parent, age, err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	if named, _, err := parentAndAge([]byte("1 (a) S 9 (b) " + fields)); err != nil || named != parent {
		t.Errorf("parent %d, %v", named, err)
	}
	for _, bad := range []string{"", "1 (a) S 9", "1 (a) " + strings.Repeat("x ", 30)} {
		if _, _, err := parentAndAge([]byte(bad)); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}
