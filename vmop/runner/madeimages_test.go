package runner

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// imageShelf is a shelf whose disk is a copy of what the test says.
func imageShelf(t *testing.T, image runnerconfig.DriveImage, content *string) *shelf {
	s := newShelf(t)
	s.drive.Image = &image
	s.e.o.MakeImage = func(_ context.Context, d runnerconfig.Drive, progress func(string)) error {
		progress("copying " + d.Image.Source)
		if *content == "" {
			return errors.New("the server answers 404 Not Found")
		}
		return os.WriteFile(d.File, []byte(*content), 0o600)
	}
	return s
}

func (s *shelf) has(want string) {
	s.t.Helper()
	got, err := os.ReadFile(s.drive.File)
	if err != nil || !strings.HasPrefix(string(got), want) || len(got) != 1<<20 {
		s.t.Errorf("the disk has %.20q of %d bytes, %v; want %q", got, len(got), err, want)
	}
}

// A disk that is a copy is made once: what comes later neither replaces it nor makes
// it anew when it is gone.
func TestADiskOfAnImageIsMadeOnce(t *testing.T) {
	content := ""
	s := imageShelf(t, runnerconfig.DriveImage{Source: "https://example.org/a.img"}, &content)
	s.refused("404 Not Found")
	if _, err := os.Stat(s.drive.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty disk was made in its place: %v", err)
	}
	content = "first"
	s.starts(qemucmd.DiskFormatRaw)
	s.has("first") // and is as large as it shall be
	content = "second"
	s.drive.Image = &runnerconfig.DriveImage{Source: "https://example.org/b.img"}
	s.starts(qemucmd.DiskFormatRaw)
	s.has("first")
	if err := os.Remove(s.drive.File); err != nil {
		t.Fatal(err)
	}
	s.refused("was there at an earlier start and is missing")
	s.e.o.NewDisks = []string{"system"}
	s.starts(qemucmd.DiskFormatRaw)
	s.has("second")
}

// Who cannot make disks of images makes no empty ones in their place.
func TestADiskOfAnImageNeedsSomebodyToMakeIt(t *testing.T) {
	content := "first"
	s := imageShelf(t, runnerconfig.DriveImage{Source: "https://example.org/a.img"}, &content)
	s.e.o.MakeImage = nil
	s.refused("nobody here makes it of its image")
	if _, err := os.Stat(s.drive.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a disk was made: %v", err)
	}
}

// An ephemeral disk is another one at each start, whatever an earlier one was or has
// left, and is gone at the end.
func TestAnEphemeralDiskIsNewAtEachStart(t *testing.T) {
	content := "first"
	s := imageShelf(t, runnerconfig.DriveImage{Source: "oci://example.org/a:1", Ephemeral: true}, &content)
	s.starts(qemucmd.DiskFormatRaw)
	content = string(qcow2(t))
	s.drive.Size = 0
	s.starts(qemucmd.DiskFormatQCOW2)
	content = "third"
	s.drive.Size = 1 << 20
	s.starts(qemucmd.DiskFormatRaw)
	s.has("third")
	s.e.removeEphemeral()
	if _, err := os.Stat(s.drive.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the disk is still there: %v", err)
	}
	content = ""
	s.refused("404 Not Found")
}

// What was a disk that is kept is never made anew, and not removed at the end of a
// start that was refused, whatever a configuration says of it later.
func TestAKeptDiskIsNeverEphemeral(t *testing.T) {
	content := "precious"
	s := imageShelf(t, runnerconfig.DriveImage{Source: "oci://example.org/a:1"}, &content)
	s.starts(qemucmd.DiskFormatRaw)
	content = "new"
	s.drive.Image = &runnerconfig.DriveImage{Source: "oci://example.org/a:1", Ephemeral: true}
	s.e.o.Config.Runner.VM.Drives = []runnerconfig.Drive{s.drive}
	s.refused("is a disk that was kept so far")
	s.e.removeEphemeral()
	s.has("precious")
}

// A disk that somebody else has made is enlarged and never made.
func TestADiskOfSomebodyGrows(t *testing.T) {
	s := newShelf(t)
	s.drive.Size, s.drive.GrowTo = 0, 1<<20
	s.refused("no such file")
	if err := os.WriteFile(s.drive.File, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.starts(qemucmd.DiskFormatRaw)
	s.has("precious")
	s.drive.GrowTo = 5
	s.starts(qemucmd.DiskFormatRaw)
	s.has("precious")
	if len(s.e.made.toGrow) > 0 {
		t.Errorf("QEMU is to enlarge %v", s.e.made.toGrow)
	}

	s = newShelf(t)
	s.drive.Size, s.drive.GrowTo = 0, 1<<30
	if err := os.WriteFile(s.drive.File, qcow2(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s.starts(qemucmd.DiskFormatQCOW2)
	if s.e.made.toGrow[s.drive.Name] != 1<<30 {
		t.Errorf("QEMU is to enlarge %v", s.e.made.toGrow)
	}
}
