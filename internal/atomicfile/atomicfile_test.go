package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/atomicfile"
)

func write(text string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if created, err := atomicfile.Create(path, write("first")); !created || err != nil {
		t.Errorf("%v, %v", created, err)
	}
	if created, err := atomicfile.Create(path, write("second")); created || err != nil {
		t.Errorf("created over another: %v, %v", created, err)
	}
	if err := atomicfile.Replace(path, []byte("third")); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if string(data) != "third" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	full := errors.New("no room")
	if _, err := atomicfile.Create(filepath.Join(dir, "b"), func(*os.File) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := atomicfile.Replace(dir, nil); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(dir)
	if len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, c := range []struct {
		text   string
		rename func(from, to string) error
		want   string
		err    error
	}{
		{"first", atomicfile.RenameNew, "first", nil},
		{"second", atomicfile.RenameNew, "first", fs.ErrExist},
		{"third", atomicfile.Rename, "third", nil},
	} {
		if err := os.WriteFile(from, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.rename(from, to); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.text, err)
		}
		if data, err := os.ReadFile(to); string(data) != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.text, data, err)
		}
		if _, err := os.Lstat(from); (err == nil) != (c.err != nil) {
			t.Errorf("%s: the other name: %v", c.text, err)
		}
	}
}

// An error names the file that was asked for, and no temporary one.
func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "a.png")
	_, cerr := atomicfile.Create(path, write(""))
	for _, err := range []error{cerr, atomicfile.Replace(path, nil)} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path+":") || strings.Contains(err.Error(), ".a.png") {
			t.Error(err)
		}
	}
}
