package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// followed is a configuration file in a directory of its own that is followed.
type followed struct {
	path    string
	news    chan string
	changed chan struct{}
}

// next waits for the next thing that the follower says.
func (f *followed) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-f.news:
		return s
	case <-time.After(patience):
		t.Fatal("the follower says nothing")
	}
	return ""
}

func follow(t *testing.T, path string) *followed {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{path: path, news: make(chan string, 16), changed: make(chan struct{}, 64)}
	ctx, cancel := context.WithCancel(context.Background())
	c := &ConfigFollower{
		Path: path, Content: content,
		Config:  func(c runnerconfig.Config, _ []string) { f.news <- fmt.Sprintf("%d CPUs", c.Runner.VM.CurrentCPUs) },
		Refused: func(err error) { f.news <- "refused: " + err.Error() },
		Changed: func() {
			select {
			case f.changed <- struct{}{}:
			default:
			}
		},
	}
	done := make(chan error, 1)
	go func() { done <- c.Follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-f.changed // it watches
	return f
}

func configText(cpus int) string {
	return fmt.Sprintf("\"/Runner\":\n  vm:\n    name: test\n    maximumCpus: 8\n    currentCpus: %d\n", cpus)
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// putAtOnce puts a file with other content in the place of one.
func putAtOnce(t *testing.T, path, content string) {
	t.Helper()
	put(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFollowPlainFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	put(t, path, configText(1))
	f := follow(t, path)
	put(t, path, configText(2))
	if got := f.next(t); got != "2 CPUs" {
		t.Error(got)
	}
	putAtOnce(t, path, configText(3))
	if got := f.next(t); got != "3 CPUs" {
		t.Error(got)
	}
	// A rewrite with the same content is no news, an invalid one is refused.
	put(t, path, configText(3))
	// At once: an empty file on the way would be another refusal.
	putAtOnce(t, path, configText(3)[:8])
	if got := f.next(t); !strings.HasPrefix(got, "refused: "+path) {
		t.Error(got)
	}
	putAtOnce(t, path, strings.Replace(configText(3), "name: test", "name: ../x", 1))
	if got := f.next(t); !strings.HasPrefix(got, "refused: "+path+": vm.name") {
		t.Error(got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, path, configText(4))
	if got := f.next(t); got != "4 CPUs" {
		t.Error(got)
	}
}

// volume is a directory that changes as Kubernetes' AtomicWriter changes it.
type volume struct {
	dir string
	n   int
}

func (v *volume) write(t *testing.T, files map[string]string) {
	t.Helper()
	v.n++
	data := fmt.Sprintf("..2026_11_21_%d", v.n)
	if err := os.Mkdir(filepath.Join(v.dir, data), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		put(t, filepath.Join(v.dir, data, name), content)
	}
	old, err := os.Readlink(filepath.Join(v.dir, "..data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	swap := filepath.Join(v.dir, "..data_tmp")
	if err := errors.Join(os.Symlink(data, swap), os.Rename(swap, filepath.Join(v.dir, "..data"))); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(v.dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFollowVolume(t *testing.T) {
	v := &volume{dir: t.TempDir()}
	v.write(t, map[string]string{"config.yaml": configText(1), "display-password": "a"})
	f := follow(t, filepath.Join(v.dir, "config.yaml"))
	for cpus := 2; cpus < 6; cpus++ {
		v.write(t, map[string]string{"config.yaml": configText(cpus), "display-password": "a"})
		if got, want := f.next(t), fmt.Sprintf("%d CPUs", cpus); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for len(f.changed) > 0 {
		<-f.changed
	}
	v.write(t, map[string]string{"config.yaml": configText(5), "display-password": "b"})
	select {
	case <-f.changed:
	case <-time.After(patience):
		t.Fatal("a new password is not noticed")
	}
	v.write(t, map[string]string{"config.yaml": "half", "display-password": "b"})
	if got := f.next(t); !strings.HasPrefix(got, "refused: ") {
		t.Error(got)
	}
}

// A link to a file somewhere else, as people make them.
func TestFollowLink(t *testing.T) {
	target := filepath.Join(t.TempDir(), "real.yaml")
	put(t, target, configText(1))
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	f := follow(t, path)
	put(t, target, configText(2))
	if got := f.next(t); got != "2 CPUs" {
		t.Error(got)
	}
}

// A file that is emptied to be written is no configuration yet, and one that stays
// empty is refused.
func TestFollowEmptiedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	put(t, path, configText(1))
	f := follow(t, path)
	for cpus := range 5 {
		put(t, path, "")
		put(t, path, configText(cpus+2))
		if got, want := f.next(t), fmt.Sprint(cpus+2, " CPUs"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	put(t, path, "")
	if got := f.next(t); !strings.HasPrefix(got, "refused: "+path) {
		t.Error(got)
	}
}

func TestFollowNothing(t *testing.T) {
	c := &ConfigFollower{Path: filepath.Join(t.TempDir(), "missing", "config.yaml")}
	if err := c.Follow(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
