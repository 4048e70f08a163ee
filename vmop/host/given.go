package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// GivenError is the error when a file that the user has to provide, such as a kernel or an image
// that is used as a disk, does not exist or may not be used.
type GivenError struct {
	// Field is the manifest's field that names it, as a JSON path.
	Field string
	// Disk is the name of the disk that uses it, if any.
	Disk string
	// File is its path.
	File string
	// Repository is the image repository, if File is below that.
	Repository string
	// Err is the system's error.
	Err error
}

func (e *GivenError) Error() string { return e.Field + ": " + e.Reason() }

// Unwrap returns the system's error.
func (e *GivenError) Unwrap() error { return e.Err }

// Reason is the error without the field.
func (e *GivenError) Reason() string {
	missing := errors.Is(e.Err, fs.ErrNotExist)
	switch below, err := filepath.Rel(e.Repository, e.File); {
	case missing && e.Repository != "" && err == nil:
		return fmt.Sprintf("the image repository %s has no %s", e.Repository, below)
	case missing:
		return e.File + ": there is no such file"
	case e.Disk != "":
		return fmt.Sprintf("disk %q: %s cannot be %s", e.Disk, e.File, cannotBe(e.File, unix.R_OK|unix.W_OK, e.Err))
	}
	return fmt.Sprintf("%s cannot be %s", e.File, cannotBe(e.File, unix.R_OK, e.Err))
}

// cannotBe names the owner and the remedy for a lack of permission.
func cannotBe(file string, mode uint32, err error) string {
	what, give := "read", "r"
	if mode&unix.W_OK != 0 {
		what, give = "read and written", "rw"
		if unix.Faccessat(unix.AT_FDCWD, file, unix.R_OK, unix.AT_EACCESS) == nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
			what = "written"
		}
	}
	text := fmt.Sprintf("%s: %v", what, err)
	if errors.Is(err, unix.EROFS) {
		return text + "; a copy on another one can"
	}
	if !errors.Is(err, fs.ErrPermission) {
		return text
	}
	denied := closedDirectory(file)
	if denied != "" {
		give = "x"
	} else {
		denied = file
	}
	info, serr := os.Stat(denied)
	if serr != nil {
		return text
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return text
	}
	if int(owner.Uid) == os.Geteuid() { // access control lists do not apply to the owner
		return fmt.Sprintf("%s: %s is yours, with mode %04o; give yourself what it takes: %s",
			text, denied, info.Mode().Perm(), shellwords.Join("chmod", "u+"+give, denied))
	}
	return fmt.Sprintf("%s for %s: %s belongs to %s and group %d with mode %04o, and a machine has your rights; its owner or root gives you what it takes: %s",
		text, whoIs(os.Geteuid()), denied, whoIs(int(owner.Uid)), owner.Gid, info.Mode().Perm(), shellwords.Join("setfacl", "-m", fmt.Sprintf("u:%d:%s", os.Geteuid(), give), denied))
}

// closedDirectory returns the first directory on a file's path that this user may not search, "" if
// there is none.
func closedDirectory(file string) string {
	closed := ""
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if errors.Is(unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS), unix.EACCES) {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed
		}
	}
}

func whoIs(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return "user " + u.Username
	}
	return fmt.Sprintf("user %d", id)
}

func unfit(mode fs.FileMode, disk bool) error {
	want := "file"
	if disk {
		want = "file or block device"
	}
	switch {
	case mode.IsRegular(), disk && mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		return nil
	case mode.IsDir():
		return errors.New("it is a directory, and no " + want)
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("it is a FIFO, and no " + want)
	case mode&fs.ModeCharDevice != 0:
		return errors.New("it is a character device, and no " + want)
	}
	return errors.New("it is no " + want)
}

// checkGiven checks the files that only the user can provide. The engine checks them too, but only
// after creating the machine's files.
func checkGiven(vm *spec.VirtualMachine, c *runnerconfig.Config, repository string) error {
	var errs []error
	check := func(field, disk, file string, mode uint32) {
		if file == "" || strings.Contains(file, "://") {
			return
		}
		err := unix.Faccessat(unix.AT_FDCWD, file, mode, unix.AT_EACCESS)
		if info, serr := os.Stat(file); err == nil && serr == nil {
			err = unfit(info.Mode(), disk != "")
		}
		if err == nil {
			return
		}
		e := &GivenError{Field: field, Disk: disk, File: file, Err: err}
		if below, rerr := filepath.Rel(repository, file); rerr == nil && filepath.IsLocal(below) {
			e.Repository = repository
		}
		errs = append(errs, e)
	}
	if k := c.Runner.VM.KernelBoot; k != nil {
		check("spec.vm.kernelBoot.kernel", "", k.Kernel, unix.R_OK)
		check("spec.vm.kernelBoot.initrd", "", k.Initrd, unix.R_OK)
	}
	for i, d := range machineconfig.Disks(vm) {
		switch drive := c.Runner.VM.Drives[i]; {
		case d.IsCD():
			check(d.Field()+".cdrom.image", "", drive.File, unix.R_OK)
		case drive.Size == 0 && drive.Image == nil || exists(drive.Where()):
			check(d.Field(), d.Name, drive.Where(), unix.R_OK|unix.W_OK)
		}
	}
	return errors.Join(errs...)
}

// Given is what a machine is given on this host, beside its manifest.
type Given struct {
	// Disks maps names of disks to existing files or block devices; see machineconfig.Host. The
	// paths are absolute.
	Disks map[string]string `json:"disks,omitempty"`
	// ImageRepository is the directory of the CD images and kernels that the manifest names by
	// relative paths; empty is [Host.ImagesDir].
	ImageRepository string `json:"imageRepository,omitempty"`
	// Accelerator overrides that of the manifest, if not empty.
	Accelerator spec.Accelerator `json:"accelerator,omitempty"`
	// ManifestDir is the absolute path of the manifest's directory: hostPaths of shares are
	// relative to it.
	ManifestDir string `json:"manifestDir,omitempty"`
	// Shares are additional folders for the guest, and the folders for the manifest's claims.
	Shares []machineconfig.LocalShare `json:"shares,omitempty"`
	// Secrets are files with manifests of Secrets, of which the machine gets the keys that it
	// names. The paths are absolute; the content is not kept elsewhere.
	Secrets []string `json:"secrets,omitempty"`
}

// over completes what is given now by what was given before. An empty path resets a disk to the one
// in the machine's own directory, and an empty folder removes a share.
func (g Given) over(before Given) Given {
	out := Given{Disks: map[string]string{}, ImageRepository: g.ImageRepository, Accelerator: g.Accelerator, Secrets: g.Secrets, ManifestDir: cmp.Or(g.ManifestDir, before.ManifestDir)}
	out.Shares = slices.Clone(before.Shares)
	for _, s := range g.Shares {
		same := func(b machineconfig.LocalShare) bool { return b.Tag == s.Tag }
		if i := slices.IndexFunc(out.Shares, same); i >= 0 && s.Dir != "" {
			out.Shares[i] = s
		} else if s.Dir != "" {
			out.Shares = append(out.Shares, s)
		} else {
			out.Shares = slices.DeleteFunc(out.Shares, same)
		}
	}
	maps.Copy(out.Disks, before.Disks)
	maps.Copy(out.Disks, g.Disks)
	maps.DeleteFunc(out.Disks, func(_, path string) bool { return path == "" })
	if out.ImageRepository == "" {
		out.ImageRepository = before.ImageRepository
	}
	if out.Accelerator == "" {
		out.Accelerator = before.Accelerator
	}
	if len(out.Secrets) == 0 {
		out.Secrets = before.Secrets
	}
	return out
}

// canonical replaces the disks' alternative names, so that a disk given twice by two names is
// detected. Names that the manifest lacks are kept.
func (g Given) canonical(vm *spec.VirtualMachine) Given {
	disks := map[string]string{}
	for name, path := range g.Disks {
		own := diskName(vm, name)
		if _, twice := g.Disks[own]; own == "" || twice {
			own = name
		}
		disks[own] = path
	}
	g.Disks = disks
	return g
}

// diskName returns the disk that a name or an unambiguous alias denotes; "" if there is none.
func diskName(vm *spec.VirtualMachine, name string) string {
	var alias []string
	for _, d := range machineconfig.Disks(vm) {
		t := d.Entry.Template()
		switch {
		case d.Name == name:
			return name
		case d.Name != "" && (d.Claim == name || t != nil && t.Metadata.Name == name || d.Ref != nil && d.Ref.Name == name):
			alias = append(alias, d.Name)
		}
	}
	if len(alias) == 1 {
		return alias[0]
	}
	return ""
}
