package host

import (
	"context"
	"path/filepath"
)

// copyMachine copies the disks of a machine, as they are at one moment, to files in a directory.
// still is called at that moment, while nothing in the machine changes. A machine that does not run
// is locked.
func (m *Machine) copyMachine(ctx context.Context, dir string, disks []heldDisk, fileOf func(heldDisk) string, options CopyOptions, still func() error) (how Consistency, total int64, err error) {
	copied := &copying{options: options}
	if m.Running() {
		how, err = m.copyRunning(ctx, dir, disks, fileOf, options, still)
	} else if err = copied.copyDisks(ctx, dir, disks, fileOf); err == nil {
		err = still()
	}
	if err != nil {
		return how, 0, err
	}
	for _, d := range disks {
		n, err := allocated(filepath.Join(dir, fileOf(d)))
		if err != nil {
			return how, 0, err
		}
		total += n
	}
	return how, total, nil
}
