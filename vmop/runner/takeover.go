package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// formerFiles are the files in a data directory that VM-Operator's runner and its children wrote:
// the UUID, the UEFI variables and the state of the TPM.
func formerFiles() []string {
	return append([]string{uuidName, runnerconfig.FirmwareVars}, tpmFiles()...)
}

// tpmFiles are swtpm's, including what it leaves when it is killed while it writes.
func tpmFiles() []string {
	return []string{
		".lock", "tpm2-00.permall", "tpm2-00.savestate", "tpm2-00.volatilestate",
		"TMP2-00.permall", "TMP2-00.savestate", "TMP2-00.volatilestate",
	}
}

// TakeOverData changes the owner of a machine's files, written as root by VM-Operator's runner, to
// a user and the group of the same number: those of a data directory, images of disks, and their
// directories. It needs CAP_CHOWN and must run as root.
//
// It does not change files that are not root's, that have names other than VM-Operator's, that have
// hard links, that are symbolic links or on another file system, or that the group may already
// write. It may be repeated.
func TakeOverData(user int, data string, images []string) error {
	in := map[string][]string{data: formerFiles()}
	dirs := []string{data}
	for _, image := range images {
		dir := filepath.Dir(image)
		if in[dir] == nil {
			dirs = append(dirs, dir)
		}
		in[dir] = append(in[dir], filepath.Base(image))
	}
	var errs []error
	for _, dir := range dirs {
		if err := giveDirectory(user, dir, in[dir]); err != nil {
			errs = append(errs, fmt.Errorf("give the files of VM-Operator's runner in %s to user %d: %w; it has to be done on the node or server that has the volume: %s",
				dir, user, err, chownCommand(user, mountInfo(), append([]string{dir}, existing(dir, in[dir])...))))
		}
	}
	return errors.Join(errs...)
}

// giveDirectory changes the owner of files of a directory, and then of the directory itself: if
// interrupted, it is repeated.
func giveDirectory(user int, dir string, files []string) (err error) {
	root, err := openPath(unix.AT_FDCWD, dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var errs []error
	for _, name := range files {
		if err := giveFile(user, int(root.Fd()), name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, give(user, root, true))...)
}

func giveFile(user, dir int, name string) (err error) {
	f, err := openPath(dir, name, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|unix.RESOLVE_NO_XDEV)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return nil
	case errors.Is(err, os.ErrPermission):
		return nil // another user's directory, closed to root without further rights
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return give(user, f, false)
}

func openPath(dir int, name string, flags, resolve uint64) (*os.File, error) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: resolve})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func give(user int, f *os.File, directory bool) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	if !isRoots(&s, uint32(user), directory) {
		return nil
	}
	if err := unix.Fchownat(int(f.Fd()), "", user, user, unix.AT_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "chown", Path: f.Name(), Err: err}
	}
	return nil
}

// isRoots reports whether a file or directory is root's and cannot be used by the group of the same
// number as user. A file with hard links does not count: it may belong to something else.
func isRoots(s *unix.Stat_t, user uint32, directory bool) bool {
	kind, needed := uint32(unix.S_IFREG), uint32(0o060)
	if directory {
		kind, needed = unix.S_IFDIR, 0o070
	}
	shared := s.Gid == user && s.Mode&needed == needed
	return s.Mode&unix.S_IFMT == kind && s.Uid == 0 && !shared && (directory || s.Nlink == 1)
}

func existing(dir string, names []string) (paths []string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// checkWritable checks what the machine writes and another user may have created: QEMU and swtpm
// would only report a lack of permission.
func (e *Engine) checkWritable() error {
	data, vm := e.o.Directories.Data, &e.o.Config.Runner.VM
	paths := []string{data}
	if vm.Firmware != string(qemucmd.FirmwareBIOS) {
		paths = append(paths, filepath.Join(data, runnerconfig.FirmwareVars))
	}
	if vm.UseTPM {
		for _, name := range tpmFiles() {
			paths = append(paths, filepath.Join(data, name))
		}
	}
	for _, d := range vm.Drives {
		if d.Type == runnerconfig.DriveCD || d.File == "" {
			continue
		}
		path := d.Where()
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) && d.Size > 0 {
			path = filepath.Dir(path)
		}
		paths = append(paths, path)
	}
	var refused, whose []string
	for _, path := range paths {
		var s unix.Stat_t
		if unix.Stat(path, &s) != nil {
			continue // a missing file is created or reported later
		}
		mode := uint32(unix.R_OK | unix.W_OK)
		switch s.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			mode |= unix.X_OK
		case unix.S_IFREG:
		default:
			continue
		}
		if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); !errors.Is(err, unix.EACCES) || slices.Contains(refused, path) {
			continue
		}
		refused = append(refused, path)
		whose = append(whose, fmt.Sprintf("%s (user %d, group %d, mode %04o)", path, s.Uid, s.Gid, s.Mode&0o7777))
	}
	if len(refused) == 0 {
		return nil
	}
	hint := ""
	if len(e.o.Volumes) > 0 {
		hint = ". Where VM-Operator's runner, which was root, wrote them, the operator's setting VMOP_TAKE_OVER_DATA=true has the machine's next pod do so"
	}
	return fmt.Errorf("user %d may not write %s: give them to it, as root and on the node or server that has the volume: %s%s",
		os.Geteuid(), strings.Join(whose, ", "), chownCommand(os.Geteuid(), mountInfo(), refused), hint)
}

func mountInfo() string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "" // the paths are those of this process then
	}
	return string(data)
}

// chownCommand has the paths on the file systems of the node or of the server.
func chownCommand(user int, mountInfo string, paths []string) string {
	words := []string{"chown", fmt.Sprintf("%d:%[1]d", user)}
	var on []string
	for _, path := range paths {
		where, system := behindMount(mountInfo, path)
		words = append(words, where)
		if system != "" && !slices.Contains(on, system) {
			on = append(on, system)
		}
	}
	line := shellwords.Join(words...)
	if len(on) > 0 {
		line += " (in the file system of " + strings.Join(on, " and ") + ")"
	}
	return line
}

// behindMount returns a path within its file system, and the file system's source, from the mount
// table (proc_pid_mountinfo(5)).
func behindMount(mountInfo, path string) (where, system string) {
	where, longest := path, -1
	for line := range strings.Lines(mountInfo) {
		front, back, _ := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if len(f) < 5 || len(b) < 2 {
			continue
		}
		below, err := filepath.Rel(unescape(f[4]), path)
		if err != nil || !filepath.IsLocal(below) || len(f[4]) < longest {
			continue // of several mounts at one place the last one counts
		}
		longest, system = len(f[4]), unescape(b[1])
		root := unescape(f[3])
		if server, export, is := strings.Cut(system, ":/"); is && strings.HasPrefix(b[0], "nfs") {
			root, system = filepath.Join("/"+export, root), server
		}
		where = filepath.Join(root, below)
	}
	return where, system
}

func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
