package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const cgroupRoot = "/sys/fs/cgroup"

// controlGroupParents returns the folders in which the node's control group is created: that of
// each controller, or the one of version 2.
func controlGroupParents() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	var parents []string
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"} {
		dir := filepath.Join(cgroupRoot, controller)
		if _, err := os.Stat(filepath.Join(dir, "tasks")); err == nil {
			parents = append(parents, dir)
		}
	}
	if len(parents) == 0 {
		return nil, fmt.Errorf("%w: %s has no control groups", ErrRequirements, cgroupRoot)
	}
	return parents, nil
}

func makeControlGroups(name string) error {
	parents, err := controlGroupParents()
	if err != nil {
		return err
	}
	for _, parent := range parents {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
		// A new group of version 1 has no processors and memory.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			data, err := os.ReadFile(filepath.Join(parent, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), data, 0)
			}
			if err != nil {
				return fmt.Errorf("control group: %w", err)
			}
		}
	}
	return nil
}

// removeControlGroups removes the group and its descendants, each of which would cost the next
// kubelet seconds.
func removeControlGroups(name string) error {
	tops, err := filepath.Glob(filepath.Join(cgroupRoot, "*", name))
	if err != nil {
		return err
	}
	if top := filepath.Join(cgroupRoot, name); len(tops) == 0 && exists(top) {
		tops = []string{top}
	}
	var errs []error
	for _, top := range tops {
		var dirs []string
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			// They are not empty, but their files vanish with them.
			err = errors.Join(err, os.Remove(dir))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
