package debianguest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// removeTree removes a work directory. The build mounts nothing in the host's mount namespace, but
// another program may have, and removing the files of a mounted /dev or /sys would be worse than
// leaving garbage: mounts are unmounted first, and if one remains nothing is removed.
func removeTree(dir string) error {
	mounts, err := mountsUnder(dir)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", mount, err)
		}
	}
	if mounts, err = mountsUnder(dir); err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is not removed: %s is still mounted", dir, mounts[0])
	}
	return os.RemoveAll(dir)
}

// mountsUnder lists the mount points at or below dir, the innermost first.
func mountsUnder(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()

	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// The fifth field is the mount point, see proc(5).
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			found = append(found, point)
		}
	}
	// Later mounts may lie on or below earlier ones.
	slices.Reverse(found)
	return found, lines.Err()
}
