package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// shelf is a machine's disk, from one start to the next.
type shelf struct {
	t     *testing.T
	e     *Engine
	drive runnerconfig.Drive
}

func newShelf(t *testing.T, volumes ...string) *shelf {
	d := Directories{Data: t.TempDir(), Runtime: t.TempDir()}
	drive := runnerconfig.Drive{Type: "raw", Name: "system", File: filepath.Join(t.TempDir(), "disk.img"), Size: 1 << 20}
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm", Drives: []runnerconfig.Drive{drive}}}}
	runnerconfig.Default(&c)
	e, err := New(Options{Config: c, Directories: d, Volumes: volumes})
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{t, e, drive}
}

// start decides about the disk as a start of the machine does.
func (s *shelf) start() (qemucmd.DiskFormat, error) {
	s.t.Helper()
	rec, err := readRecord(s.e.o.Directories.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	facts, err := s.e.prepareDrives(s.t.Context(), []runnerconfig.Drive{s.drive}, rec.Disks)
	if err != nil {
		return "", err
	}
	if err := rec.write(s.e.o.Directories.Data); err != nil {
		s.t.Fatal(err)
	}
	return facts[0].Format, nil
}

func (s *shelf) starts(want qemucmd.DiskFormat) {
	s.t.Helper()
	if got, err := s.start(); err != nil || got != want {
		s.t.Errorf("the disk is %s, %v; want %s", got, err, want)
	}
}

func (s *shelf) refused(text string) {
	s.t.Helper()
	if got, err := s.start(); err == nil || !strings.Contains(err.Error(), text) {
		s.t.Errorf("the disk is %s, %v; want an error with %q", got, err, text)
	}
}

func (s *shelf) end() {
	s.t.Helper()
	if err := s.e.noteImages(); err != nil {
		s.t.Fatal(err)
	}
}

// write writes over the image, as cp does.
func (s *shelf) write(data []byte) {
	s.t.Helper()
	f, err := os.OpenFile(s.drive.File, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(data)
	}
	if err != nil || f.Close() != nil {
		s.t.Fatal(err)
	}
}

// qcow2 is an image that qemu-img makes.
func qcow2(t *testing.T, options ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.qcow2")
	args := append([]string{"create", "-q", "-f", "qcow2"}, options...)
	if out, err := exec.Command("qemu-img", append(args, path, "1M")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: install it with: make deps\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is put in place of a raw image is not written over, and what its guest
// wrote into it makes it nothing else.
func TestRawImageThatLooksLikeQcow2(t *testing.T) {
	s := newShelf(t)
	s.starts("raw")
	s.write(qcow2(t)) // by the guest
	s.end()
	s.starts("raw")
	s.end()
	s.starts("raw")

	s = newShelf(t)
	s.starts("raw")
	s.end()
	s.write(qcow2(t)) // by a person
	s.refused("it was replaced in place")
	s.write(make([]byte, 1<<20))
	s.starts("raw")
	s.write([]byte("QFI\xfb\x00\x00\x00\x03 and nothing more"))
	s.refused("it was replaced in place")
}

// A qcow2 image is looked at at each start: what was put in its place may refer to
// other files.
func TestReplacedQcow2Image(t *testing.T) {
	other := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(other, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, evil := range map[string][]byte{
		"backing":        qcow2(t, "-b", other, "-F", "raw"),
		"external data":  qcow2(t, "-o", "data_file="+filepath.Join(t.TempDir(), "data")),
		"looks like raw": make([]byte, 1<<20),
	} {
		s := newShelf(t)
		s.write(qcow2(t))
		s.starts("qcow2")
		s.end()
		s.starts("qcow2")
		s.write(evil)
		s.refused(text)
	}
}

// The number of a file's inode comes back, the time of its birth does not.
func TestInodeNumbersComeBack(t *testing.T) {
	s := newShelf(t)
	s.starts("raw")
	s.write(qcow2(t))
	s.end() // as of a guest that wrote it
	rec, err := readRecord(s.e.o.Directories.Data)
	if err != nil {
		t.Fatal(err)
	}
	r := rec.Disks[s.drive.File]
	if r.Birth == 0 {
		t.Log("this file system knows no births: the record is of another one")
		r.Birth = 1
		rec.Disks[s.drive.File] = r
		if before := r; !before.same(image{inode: r.Inode}) {
			t.Error("a file system that forgets births makes another file of each")
		}
		return
	}
	r.Birth--
	rec.Disks[s.drive.File] = r
	if err := rec.write(s.e.o.Directories.Data); err != nil {
		t.Fatal(err)
	}
	s.refused("was replaced by a file that looks like qcow2")
}

// No empty disk takes the place of one that was there.
func TestImageThatIsMissing(t *testing.T) {
	s := newShelf(t)
	s.starts("raw")
	if err := os.Rename(s.drive.File, s.drive.File+".moved"); err != nil {
		t.Fatal(err)
	}
	s.refused("is missing: put it back")
	s.drive.File += ".other"
	s.refused("the disk system has been")
	if entries, err := os.ReadDir(filepath.Dir(s.drive.File)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	s.drive.File = strings.TrimSuffix(s.drive.File, ".other") + ".moved"
	s.starts("raw") // it was found again
}

// No symbolic link on a volume leads to a disk; elsewhere it is its owner's.
func TestSymbolicLinkOnAVolume(t *testing.T) {
	s := newShelf(t)
	s.starts("raw")
	real := s.drive.File
	volume := filepath.Join(filepath.Dir(real), "volume")
	if err := os.Mkdir(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	s.drive = runnerconfig.Drive{Type: "raw", Name: "data", File: filepath.Join(volume, "disk.img")}
	if err := os.Symlink("../disk.img", s.drive.File); err != nil {
		t.Fatal(err)
	}
	s.starts("raw")
	s.e.o.Volumes = []string{volume}
	s.refused("there is a symbolic link in the path")
	s.drive.Size = 1 << 20
	s.refused("there is a symbolic link in the path")
	if err := os.Remove(s.drive.File); err != nil {
		t.Fatal(err)
	}
	s.e.o.Volumes = nil
	s.refused("is missing")
}

// An image that is missing is made anew for whoever wants it: the configuration says
// so for a disk that the operator was asked to replace.
func TestMissingImage(t *testing.T) {
	s := newShelf(t)
	s.starts("raw")
	s.end()
	if err := os.Remove(s.drive.File); err != nil {
		t.Fatal(err)
	}
	s.refused("was there at an earlier start")
	s.drive.NewImage = true
	s.starts("raw")
	s.write(append([]byte("somebody's"), make([]byte, 1<<20)...))
	s.starts("raw") // and only if there is none
	if data, err := os.ReadFile(s.drive.File); err != nil || string(data[:10]) != "somebody's" {
		t.Errorf("the image begins with %q, %v", data[:min(10, len(data))], err)
	}
}
