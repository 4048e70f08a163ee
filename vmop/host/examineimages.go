package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runner"
)

type examinedMachine struct {
	name     string
	problems []imageProblem
	disks    int
}

// imageProblem is what would prevent a machine's next start, and the remedy.
type imageProblem struct{ found, do string }

type storage struct {
	dir string
	// grows is what guests may still write beyond the allocated size of their images, in bytes.
	grows, free int64
}

type examinedImages struct {
	machines []examinedMachine
	storages []storage
	// cached is the number of images in the cache, cachedSize their size in bytes. stale and unused
	// could be removed: those not used for PruneAfter, and all that are not a machine's disk.
	cached        int
	cachedSize    int64
	stale, unused Pruned
	// left are directories of interrupted copies, leftSize their size.
	left     []string
	leftSize int64
	// unmerged are machines whose guests' writes during an interrupted copy are not in their images
	// yet.
	unmerged []string
	// problem is why the cache cannot be examined, unknown why nothing can.
	problem, unknown string
}

func (h *Host) examineImages(ctx context.Context) (out examinedImages) {
	machines, err := h.List(ListOptions{})
	if err != nil {
		out.unknown = err.Error()
		return out
	}
	byDevice := map[uint64]int{}
	for i := range machines {
		m := &machines[i]
		found := examinedMachine{name: m.FullName()}
		if overlay.Left(m.Data) {
			if err := overlay.Check(m.Data); err != nil {
				found.problems = append(found.problems, imageProblem{found: "a copy of its disks was interrupted and cannot be completed: " + err.Error(), do: "see to what is said there; nothing is written to its disks before"})
			} else {
				out.unmerged = append(out.unmerged, m.FullName())
			}
		}
		disks, err := h.examineDisks(m)
		for _, p := range unjoin(err) {
			found.problems = append(found.problems, imageProblem{found: p.Error(), do: whatHelps(p)})
		}
		found.disks = len(disks)
		for _, d := range disks {
			info, err := os.Stat(filepath.Dir(d.path))
			if err != nil {
				continue // already reported with the disk
			}
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				continue
			}
			if _, known := byDevice[stat.Dev]; !known {
				s := storage{dir: filepath.Dir(d.path)}
				var fs unix.Statfs_t
				if err := unix.Statfs(s.dir, &fs); err != nil {
					continue
				}
				s.free = int64(fs.Bavail) * fs.Bsize
				byDevice[stat.Dev] = len(out.storages)
				out.storages = append(out.storages, s)
			}
			out.storages[byDevice[stat.Dev]].grows += d.grows
		}
		out.machines = append(out.machines, found)
	}
	if err := h.examineLeft(&out); err != nil {
		out.unknown = err.Error()
	}
	if err := h.examineCache(ctx, &out); err != nil {
		out.problem = err.Error()
	}
	return out
}

func (h *Host) examineLeft(out *examinedImages) error {
	machines := filepath.Join(h.root, machinesDir)
	for _, pattern := range []string{
		filepath.Join(machines, "*", newClonePrefix+"*"), filepath.Join(machines, "*", newMachinePrefix+"*"),
		filepath.Join(machines, "*", "*", snapshotsDir, newSnapshotPrefix+"*"), filepath.Join(machines, "*", "*", snapshotsDir, deletedSnapshotPrefix+"*"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, dir := range found {
			if makers, err := runner.Holders(dir); err != nil || len(makers) > 0 {
				continue // in progress
			}
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				return err
			}
			for _, file := range files {
				if n, err := allocated(file); err == nil {
					out.leftSize += n
				}
			}
			out.left = append(out.left, dir)
		}
	}
	return nil
}

func (h *Host) examineCache(ctx context.Context, out *examinedImages) error {
	all, err := h.Images()
	if err != nil {
		return err
	}
	for _, i := range all {
		out.cached++
		out.cachedSize += i.Allocated
	}
	if out.stale, err = h.Prunable(ctx, PruneAfter); err != nil {
		return err
	}
	out.unused, err = h.Prunable(ctx, 0)
	return err
}

// examinedDisk is an image; grows is what it may still need, in bytes.
type examinedDisk struct {
	path  string
	grows int64
}

func (h *Host) examineDisks(m *Machine) (out []examinedDisk, err error) {
	o, err := m.Object()
	if errors.Is(err, ErrNoManifest) {
		return nil, nil // it cannot be started by its name
	}
	if err != nil {
		return nil, err
	}
	local, err := h.Local(&o, Given{})
	if err != nil {
		return nil, err
	}
	c, err := machineconfig.ForHost(o.VirtualMachine, local)
	if err != nil {
		return nil, err
	}
	def, err := m.Definition()
	if err != nil {
		return nil, err
	}
	known, err := m.known(def)
	if err != nil {
		return nil, err
	}
	errs := []error{checkGiven(o.VirtualMachine, &c, local.ImageRepository)}
	disks := startDisks(&c, hasContent)
	if !m.Running() {
		errs = append(errs, checkDisks(disks, known, nil))
	}
	var paths []string
	for _, d := range disks {
		at := examinedDisk{path: d.path, grows: d.size}
		info, err := os.Stat(d.path)
		switch {
		case err == nil && !info.Mode().IsRegular():
			continue // fully allocated
		case err == nil:
			_, size, err := m.look(d.path)
			if err != nil {
				size = 0 // reported by CheckImages
			}
			has, err := allocated(d.path)
			if err != nil {
				return out, err
			}
			at.grows = max(size, 0) - has
			if mayUse(d.path) {
				paths = append(paths, d.path)
			}
		case !errors.Is(err, fs.ErrNotExist):
			continue
		}
		at.grows = max(at.grows, 0)
		out = append(out, at)
	}
	if m.Running() {
		return out, errors.Join(errs...)
	}
	changed, err := runner.CheckImages(m.Data, paths)
	errs = append(errs, err)
	for _, d := range disks {
		if err := changed[d.path]; err != nil {
			errs = append(errs, fmt.Errorf("disk %q: %w", d.name, err))
		}
	}
	return out, errors.Join(errs...)
}

func mayUse(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS) == nil
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what is within another error is that error's
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, unjoin(e)...)
	}
	return out
}

func whatHelps(err error) string {
	given := (*GivenError)(nil)
	empty := (*EmptyDiskError)(nil)
	switch {
	case errors.As(err, &empty):
		return fmt.Sprintf("put the image back, or name another one at the next start with --disk %s; --new-disk %s is for an empty disk in its place", shellwords.Quote(empty.Disk+"=PATH"), empty.Disk)
	case errors.As(err, &given) && errors.Is(err, fs.ErrPermission):
		return "have the rights given to you, as is said there, or use a copy of your own"
	case errors.As(err, &given) && given.Disk != "":
		return fmt.Sprintf("put the image there, or name another one at the next start with --disk %s", shellwords.Quote(given.Disk+"=PATH"))
	case errors.As(err, &given):
		return "put the file there, or correct the manifest with vmop-cli edit"
	}
	return "put the right image there, or correct the manifest with vmop-cli edit"
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func diagnoseImages(s *examinedImages, say func(status FindingStatus, subject, do, format string, args ...any)) {
	if s.unknown != "" {
		say(FindingLimited, "disks", "see to the directory of the machines", "%s", s.unknown)
		return
	}
	disks, sound := 0, true
	for _, m := range s.machines {
		disks += m.disks
		if len(m.problems) == 0 {
			continue
		}
		sound = false
		var found, do []string
		for _, p := range m.problems {
			found = append(found, p.found)
			if len(do) == 0 || do[len(do)-1] != p.do {
				do = append(do, p.do)
			}
		}
		say(FindingLimited, "disks of "+m.name, strings.Join(do, "; "), "it does not start: %s", strings.Join(found, "; "))
	}
	if sound {
		say(FindingOK, "disks", "", "%s: each is what it was, or will be made", counted(disks, "disk")+" of "+counted(len(s.machines), "machine"))
	}
	for _, at := range s.storages {
		if at.grows > at.free {
			say(FindingLimited, "growth in "+at.dir, "make room before the guests use theirs: a guest whose disk cannot grow is paused, and goes on when there is room",
				"the disks of machines there may grow by %s, and %s are free", mebibytes(uint64(at.grows)), mebibytes(uint64(at.free)))
		}
	}
	if len(s.left) > 0 {
		say(FindingOK, "interrupted copies", "the next snapshot or clone in their place removes them: "+strings.Join(s.left, ", "), "%d of %s", len(s.left), mebibytes(uint64(s.leftSize)))
	}
	if len(s.unmerged) > 0 {
		say(FindingOK, "unfinished copies", "their next snapshot, clone, resume or start completes them; until then the images alone are not what the guests have written", "of %s", strings.Join(s.unmerged, ", "))
	}
	if s.problem != "" {
		say(FindingLimited, "image cache", "remove what is broken there; machines do not depend on it", "%s", s.problem)
		return
	}
	text := counted(s.cached, "image") + " of " + mebibytes(uint64(s.cachedSize))
	if n := s.unused.Partial; n > 0 {
		text += " and " + counted(n, "incomplete download")
	}
	do := ""
	switch {
	case s.stale.Freed > 0:
		do = fmt.Sprintf("vmop-cli image prune removes %s and %s that nobody has used for %d days (%s), and with --unused-for 0 all that no machine uses (%s)",
			counted(len(s.stale.Images), "image"), counted(s.stale.Partial, "download"), int(PruneAfter.Hours()/24), mebibytes(uint64(s.stale.Freed)), mebibytes(uint64(s.unused.Freed)))
	case s.unused.Freed > 0:
		do = fmt.Sprintf("if you need the room, vmop-cli image prune --unused-for 0 removes all that no machine uses (%s)", mebibytes(uint64(s.unused.Freed)))
	}
	say(FindingOK, "image cache", do, "%s", text)
}
