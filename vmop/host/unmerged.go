package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// checkMerged refuses images of another machine with an interrupted copy: its guest's last writes
// would be merged into them later, whatever they contain then. d is the machine's own directory.
func (h *Host) checkMerged(d Directories, c *runnerconfig.Config) error {
	others, err := filepath.Glob(filepath.Join(h.root, machinesDir, "*", "*", overlay.Dir))
	if err != nil {
		return err
	}
	for _, other := range others {
		data := filepath.Dir(other)
		j, err := overlay.Read(data)
		if data == d.Data || err != nil || j == nil || !j.Phase.Counts() {
			continue // its own start reports what is wrong with it
		}
		for _, held := range j.Disks {
			image, err := os.Stat(held.In(data))
			if err != nil {
				continue
			}
			for _, drive := range c.Runner.VM.Drives {
				if mine, err := os.Stat(drive.Where()); err == nil && os.SameFile(mine, image) {
					full := FullName(filepath.Base(filepath.Dir(data)), filepath.Base(data))
					return fmt.Errorf("disk %q: %s is a disk of %s, a copy of which was interrupted: what that wrote last is in %s, and has to be merged before; make a snapshot of it, or start it", drive.Name, drive.Where(), full, other)
				}
			}
		}
	}
	return nil
}
