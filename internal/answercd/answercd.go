// Package answercd makes the CD on which Windows' setup looks for its answers.
package answercd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

const (
	// Label is the name of the volume, which setup does not check.
	Label = "UNATTEND"
	// WorkSuffix is appended to the image's path for the directory in which the files are prepared;
	// it is removed when the image is complete.
	WorkSuffix = ".d"

	sectorSize = 2048
)

// The names of the files in the root directory of the CD: Windows' setup reads the first by itself,
// and the second in later passes.
const (
	AutounattendName = "autounattend.xml"
	UnattendName     = "unattend.xml"
)

// Files is the content of the CD. nil means no such file.
type Files struct {
	Autounattend, Unattend []byte
}

// Write creates the image, an ISO 9660 volume with Joliet and Rock Ridge names, readable by its
// owner only. An existing file is replaced. Errors contain nothing of the files' content.
func Write(path string, files Files) (err error) {
	work := path + WorkSuffix
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for name, content := range map[string][]byte{AutounattendName: files.Autounattend, UnattendName: files.Unattend} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(work, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const start = 0
	iso, err := iso9660.Create(file.New(f, false), 0, start, sectorSize, work)
	if err != nil {
		return fmt.Errorf("ISO 9660 volume: %w", err)
	}
	// The standard pads names with blanks, the library does not.
	if err := iso.Finalize(iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: fmt.Sprintf("%-32s", Label)}); err != nil {
		return fmt.Errorf("ISO 9660 volume: %w", err)
	}
	return nil
}
