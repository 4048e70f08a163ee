package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

func (p *program) deleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "forget a machine",
		ArgsUsage: "NAME",
		Description: "Removes a machine that does not run from this host. Its disks stay, with what belongs\n" +
			"to them (UUID, UEFI variables, TPM state): the next run of a machine of this name has\n" +
			"them again. --disks removes them too, for which it asks for the machine's name; that\n" +
			"also works later.\n" +
			"Images and devices that run was given by --disk are never touched.\n\n" +
			"Examples:\n" +
			"  vmop-cli delete hello\n" +
			"  vmop-cli delete hello --disks",
		Flags: machineFlags(
			&cli.BoolFlag{Name: "disks", Usage: "remove the disks as well; this cannot be undone", DisableDefaultText: true},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask", DisableDefaultText: true},
		),
		Action: p.delete,
	}
}

func (p *program) delete(c *cli.Context) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	m, err := p.findAmong(c, name, true)
	if err != nil {
		return err
	}
	full := fullName(m.Namespace, m.Name)
	if m.running() {
		return fmt.Errorf("%s runs (%s): stop it first, with vmop-cli stop %s", full, m.Status, full)
	}
	lock, err := lockMachine(m.machine)
	if err != nil {
		return fmt.Errorf("delete %s: %w", full, err)
	}
	defer lock.Close()
	files, err := machineFiles(m.machine)
	if err != nil {
		return fmt.Errorf("delete %s: %w", full, err)
	}
	precious := slices.DeleteFunc(slices.Clone(files), func(f machineFile) bool { return f.kind != diskFile && f.kind != identityFile })
	withDisks := c.Bool("disks")
	if withDisks && len(precious) > 0 && !c.Bool("yes") {
		if err := p.confirm(full, m.Name, precious); err != nil {
			return err
		}
	}
	var kept []machineFile
	var errs []error
	for _, f := range files {
		if f.remove(withDisks) {
			if err := os.Remove(filepath.Join(m.machine, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		} else {
			kept = append(kept, f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete %s: %w", full, err)
	}
	fmt.Fprintf(p.stdout, "%s is deleted.\n", full)
	if len(kept) == 0 {
		return removeEmpty(m.machine)
	}
	for _, f := range kept {
		about := size(f.size)
		if h := holds(f.name); h != "" && f.kind == identityFile {
			about = h + ", " + about
		}
		fmt.Fprintf(p.stdout, "kept: %s (%s)\n", printableCell(filepath.Join(m.machine, f.name)), about)
	}
	return nil
}

// lockMachine takes the lock that a runner takes, so that none starts meanwhile.
func lockMachine(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFileName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = errors.New("it is just being started")
			}
			return nil, errors.Join(err, f.Close())
		}
		// Another delete may have removed the file between the two steps.
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// lockFileName is the runner's lock file.
const lockFileName = "lock"

// fileKind says what a file in a machine's directory is.
type fileKind int

const (
	foreignFile  fileKind = iota // nobody knows
	ownFile                      // about the machine as it was run
	identityFile                 // the disks' content may depend on it
	diskFile
)

// machineFile is an entry of a machine's directory.
type machineFile struct {
	name string
	kind fileKind
	size int64
}

// kindOf tells by its name what an entry is. What is no plain file is not ours,
// whatever its name.
func kindOf(name string, mode fs.FileMode) fileKind {
	is := func(patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
	}
	switch {
	case !mode.IsRegular():
		return foreignFile
	case is(manifestName, stateName, logName, oldLogName, lockFileName, "."+manifestName+".*", "."+stateName+".*"):
		return ownFile
	case is("machine.json", "machine.tmpl", "uuid.txt", "fw-vars.fd", "fw-vars.*.fd", "tpm2-*", ".lock"):
		return identityFile
	case is("*.img"):
		return diskFile
	}
	return foreignFile
}

// remove says whether an entry goes. The identity goes with the disks only: a
// disk, wherever it is, may be unreadable without its TPM.
func (f machineFile) remove(withDisks bool) bool {
	switch f.kind {
	case ownFile:
		return true
	case identityFile, diskFile:
		return withDisks
	}
	return false
}

func machineFiles(dir string) ([]machineFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []machineFile
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		out = append(out, machineFile{name: e.Name(), kind: kindOf(e.Name(), info.Mode()), size: info.Size()})
	}
	return out, nil
}

// removeEmpty removes a machine's directory, and its namespace's if that was the
// last one.
func removeEmpty(dir string) error {
	if err := os.Remove(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Dir(dir)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}

// confirm asks for the machine's name before its disks and identity are removed.
func (p *program) confirm(full, name string, precious []machineFile) error {
	if !isTerminal(p.stdin) {
		return errors.New("--disks asks on a terminal, and the standard input is none: say --yes")
	}
	var disks, total int64
	var identity []string
	for _, f := range precious {
		if f.kind == diskFile {
			disks++
			total += f.size
		}
		if h := holds(f.name); h != "" && f.kind == identityFile && !slices.Contains(identity, h) {
			identity = append(identity, h)
		}
	}
	and := ""
	if len(identity) > 0 {
		and = ", and what belongs to them (" + strings.Join(identity, ", ") + ")"
	}
	fmt.Fprintf(p.stderr, "%d disks of %s, %s%s would be gone for ever. Type the machine's name to go on: ", disks, full, size(total), and)
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != name && strings.TrimSpace(answer) != full {
		return errors.New("nothing was deleted")
	}
	return nil
}
