package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// diskUsers returns which disk of which machine an image is, by the images' paths without symbolic
// links, for all machines but one, or all.
func (h *Host) diskUsers(but *Machine) (map[string]string, error) {
	machines, err := h.List(ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range machines {
		m := &machines[i]
		if but != nil && m.Data == but.Data {
			continue
		}
		def, err := m.Definition()
		if err != nil {
			return nil, err // the machine's disks are unknown
		}
		for _, paths := range []map[string]string{def.Disks, def.Used, h.diskPaths(m)} {
			for name, path := range paths {
				out[withoutLinks(path)] = fmt.Sprintf("disk %q of %s", name, m.FullName())
			}
		}
	}
	return out, nil
}

func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// checkOwn refuses images of a machine that are to be removed or replaced if another machine has one
// of them as a disk, whether it runs or not, or if a QEMU has one open.
func (h *Host) checkOwn(m *Machine, images ...string) error {
	if len(images) == 0 {
		return nil
	}
	users, err := h.diskUsers(m)
	if err != nil {
		return err
	}
	for _, path := range images {
		if user, has := users[withoutLinks(path)]; has {
			return fmt.Errorf("%s is %s: detach it there first", path, user)
		}
		if err := checkUnused(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
