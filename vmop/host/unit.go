package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/spec"
)

// RestartPolicy is when systemd restarts a machine that has ended.
type RestartPolicy string

// The values of RestartPolicy. None restarts a machine that was stopped.
const (
	// RestartNo never restarts it.
	RestartNo RestartPolicy = "no"
	// RestartOnFailure restarts one that did not start or that failed.
	RestartOnFailure RestartPolicy = "on-failure"
	// RestartAlways also restarts one whose guest has shut down.
	RestartAlways RestartPolicy = "always"
)

// UnitStopped is the exit status of a unit's command when the machine was stopped on request: by
// systemd, which does not restart it in any case, or by [Machine.Stop], of which systemd does not
// know.
const UnitStopped = 5

// Unit is a systemd service that runs a machine with its host.
type Unit struct {
	Namespace, Name string
	// Command runs the machine in the foreground until it gets SIGTERM; its first word is the path
	// of a program. Its exit statuses are those of package runner and UnitStopped. If one of its
	// words is [Host.DataDir] and the last the machine's full name, every start of the machine uses
	// this service, see [Job.Start].
	Command []string
	// System reports whether it is a service of the system's manager, not of a user's.
	System bool
	// User is the user of a system service; empty is root.
	User string
	// Stop is how long the machine may take to stop, in seconds.
	Stop int
	// Bridge reports that QEMU's bridge helper, which has privileges of its own, creates its tap
	// interfaces: the unit must not remove these.
	Bridge bool
	// Restart is the policy; empty is RestartOnFailure.
	Restart RestartPolicy
}

// FileName is the unit's file name. It is unique: a namespace contains no dot.
func (u Unit) FileName() string {
	return "vmop." + namespaceOr(u.Namespace) + "." + u.Name + ".service"
}

func (u Unit) target() string {
	if u.System {
		return "multi-user.target"
	}
	return "default.target"
}

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/_.+@,-]+$`)

// Text returns the unit's file. It is confined as far as QEMU permits: because QEMU opens disks
// anywhere the user may, only the system's part of the file system is protected.
func (u Unit) Text() (string, error) {
	if err := u.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Made by vmop-cli enable; vmop-cli disable removes it.")
	line("[Unit]")
	line("Description=Virtual machine %s", FullName(u.Namespace, u.Name))
	line("Documentation=man:vmop-cli(1)")
	line("# One that cannot start is given up after some attempts.")
	line("StartLimitIntervalSec=600")
	line("StartLimitBurst=5")
	if u.System {
		line("Wants=network-online.target")
		line("After=network-online.target")
	}
	line("")
	u.service(line)
	if u.System {
		u.confineSystem(line)
	}
	if !u.Bridge {
		confine(line)
	}
	line("")
	line("[Install]")
	line("WantedBy=%s", u.target())
	return b.String(), nil
}

func (u Unit) check() error {
	if len(u.Command) == 0 || !plainPath.MatchString(u.Command[0]) {
		return fmt.Errorf("systemd cannot run %q: install the program at a path without blanks and special characters", u.Command)
	}
	if u.User != "" && !userName.MatchString(u.User) {
		return fmt.Errorf("a service cannot run as the user %q", u.User)
	}
	switch u.Restart {
	case "", RestartNo, RestartOnFailure, RestartAlways:
		return nil
	}
	return fmt.Errorf("restart %q: want no, on-failure or always", u.Restart)
}

func (u Unit) service(line func(format string, args ...any)) {
	words := []string{u.Command[0]}
	for _, w := range u.Command[1:] {
		words = append(words, unitWord(w))
	}
	line("[Service]")
	line("Type=exec")
	line("ExecStart=%s", strings.Join(words, " "))
	line("# The first TERM asks the guest to shut down; QEMU itself gets none.")
	line("KillMode=mixed")
	line("TimeoutStopSec=%d", u.Stop)
	line("Restart=%s", cmp.Or(u.Restart, RestartOnFailure))
	line("RestartSec=10")
	line("# 2: wrong usage, 3: it was stopped without the guest's consent, %d: it was stopped.", UnitStopped)
	line("RestartPreventExitStatus=2 3 %d", UnitStopped)
	line("SuccessExitStatus=3 %d", UnitStopped)
	line("OOMPolicy=continue")
	line("UMask=0077")
}

const unneededCapabilities = "CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_AUDIT_WRITE CAP_BLOCK_SUSPEND CAP_BPF CAP_LEASE " +
	"CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_PERFMON CAP_SYSLOG CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_PACCT CAP_SYS_RAWIO " +
	"CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_WAKE_ALARM"

func (u Unit) confineSystem(line func(format string, args ...any)) {
	if u.User != "" {
		line("User=%s", u.User)
	}
	dir := strings.TrimSuffix(u.FileName(), ".service")
	line("RuntimeDirectory=%s", dir)
	line("RuntimeDirectoryMode=0700")
	line("Environment=XDG_RUNTIME_DIR=/run/%s", dir)
	line("ProtectSystem=full")
	line("ProtectControlGroups=yes")
	line("ProtectKernelModules=yes")
	line("ProtectKernelTunables=yes")
	line("ProtectKernelLogs=yes")
	line("PrivateMounts=yes")
	line("ProtectHostname=yes")
	switch {
	case u.Bridge:
	case u.User == "":
		line("CapabilityBoundingSet=~%s", unneededCapabilities)
	default:
		line("CapabilityBoundingSet=")
	}
}

// confine must not be used with QEMU's bridge helper, which becomes root.
func confine(line func(format string, args ...any)) {
	line("NoNewPrivileges=yes")
	line("LockPersonality=yes")
	line("RestrictSUIDSGID=yes")
	line("SystemCallArchitectures=native")
	line("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK")
	line("RestrictRealtime=yes")
	line("# virtiofsd confines itself by these.")
	line("RestrictNamespaces=user mnt pid net")
	line("SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap")
	line("SystemCallErrorNumber=EPERM")
}

// unitWord quotes a word of a command line (systemd.service(5), systemd.syntax(7)), without
// replacement of specifiers and variables.
func unitWord(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '%', r == '$':
			b.WriteRune(r)
			b.WriteRune(r)
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1, !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
		i += size
	}
	b.WriteByte('"')
	return b.String()
}

// UnitOf returns the service of a machine, which command runs. For a nil machine it has no name,
// and [Host.Enable] refuses it.
func UnitOf(vm *spec.VirtualMachine, command []string) Unit {
	if vm == nil {
		return Unit{Command: command}
	}
	u := Unit{Namespace: namespaceOr(vm.Namespace), Name: vm.Name, Command: command, Stop: int(stopReserve.Seconds())}
	if t := &vm.Spec; t.VM.PowerdownTimeout != nil || t.TerminationGracePeriodSeconds != nil {
		u.Stop += int(t.ShutdownSeconds())
	}
	for _, n := range vm.Spec.VM.Networks {
		u.Bridge = u.Bridge || n.Tap != nil
	}
	return u
}

const systemUnits = "/etc/systemd/system"

// IsSystemUnit reports whether a unit's file is one of the system's manager.
func (h *Host) IsSystemUnit(path string) bool { return filepath.Dir(path) == systemUnits }

func (h *Host) unitDir(system bool) (string, error) {
	if system {
		return systemUnits, nil
	}
	if dir := h.env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "systemd", "user"), nil
	}
	if home := h.env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "systemd", "user"), nil
	}
	return "", errors.New("there is no home directory to keep units of systemd in")
}

// Enable has systemd run a machine with the host from its next start on, or with the user's first
// login if the user does not linger (loginctl(1)). It returns the unit's file. It does not reload
// systemd: systemctl daemon-reload does that.
func (h *Host) Enable(u Unit) (string, error) {
	text, err := u.Text()
	if err != nil {
		return "", err
	}
	dir, err := h.unitDir(u.System)
	if err != nil {
		return "", err
	}
	path, wants := filepath.Join(dir, u.FileName()), filepath.Join(dir, u.target()+".wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return "", fmt.Errorf("enable %s: %w", FullName(u.Namespace, u.Name), err)
	}
	err = atomicfile.Replace(path, []byte(text))
	if err == nil && u.System {
		err = os.Chmod(path, 0o644)
	}
	if err == nil {
		err = os.Symlink("../"+u.FileName(), filepath.Join(wants, u.FileName()))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("enable %s: %w", FullName(u.Namespace, u.Name), err)
	}
	return path, nil
}

// Enabled are the files of the units that run a machine with the host.
func (h *Host) Enabled(namespace, name string) []string {
	u := Unit{Namespace: namespace, Name: name}
	var out []string
	for _, u.System = range []bool{false, true} {
		if dir, err := h.unitDir(u.System); err == nil && exists(filepath.Join(dir, u.FileName())) {
			out = append(out, filepath.Join(dir, u.FileName()))
		}
	}
	return out
}

// Disable removes Enable's files, and returns their paths. A running machine goes on, and its unit
// is kept for systemd until the host reboots: without it, systemd would end QEMU together with the
// runner, which would be a power cut for the guest.
func (h *Host) Disable(namespace, name string) ([]string, error) {
	units := h.Enabled(namespace, name)
	m, err := h.Machine(namespace, name)
	runs := err == nil && m.Runner != 0
	for _, path := range units {
		u := Unit{Namespace: namespace, Name: name, System: h.IsSystemUnit(path)}
		if dir := h.passingUnitDir(u.System); runs && dir != "" {
			if err := keepUnit(path, dir); err != nil {
				return nil, fmt.Errorf("disable %s: %w", FullName(namespace, name), err)
			}
		}
		link := filepath.Join(filepath.Dir(path), u.target()+".wants", u.FileName())
		for _, file := range []string{link, path} {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("disable %s: %w", FullName(namespace, name), err)
			}
		}
	}
	return units, nil
}

// passingUnitDir is the directory of a running systemd's units until it ends; "" if none runs.
func (h *Host) passingUnitDir(system bool) string {
	dir, sub := "/run", "system"
	if !system {
		dir, sub = h.env("XDG_RUNTIME_DIR"), "user"
	}
	if dir = filepath.Join(dir, "systemd"); !filepath.IsAbs(dir) || !exists(dir) {
		return ""
	}
	return filepath.Join(dir, sub)
}

func keepUnit(path, dir string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	kept := filepath.Join(dir, filepath.Base(path))
	if err := atomicfile.Replace(kept, text); err != nil {
		return err
	}
	return os.Chmod(kept, 0o644) // for systemd's tools, which any user may run
}

// Renewed is the result of [Host.Renew].
type Renewed struct {
	// Units are the rewritten files. systemd has to be reloaded.
	Units []string
	// Stale are those that should be rewritten: a user has changed them, or only root may.
	Stale []string
}

// Renew updates the units that start a machine with the host to its manifest: how long it may take
// to stop, and whether it needs QEMU's bridge helper. A unit that a user has changed is left alone.
func (h *Host) Renew(vm *spec.VirtualMachine) (Renewed, error) {
	var out Renewed
	if vm == nil {
		return out, errNoMachine
	}
	for _, path := range h.Enabled(vm.Namespace, vm.Name) {
		data, err := os.ReadFile(path)
		if err != nil {
			return out, err
		}
		had := string(data)
		want := UnitOf(vm, nil)
		want.System = h.IsSystemUnit(path)
		text, ours, err := renewedText(had, want)
		switch {
		case err != nil:
			return out, err
		case text == had:
		case !ours || want.System && os.Geteuid() != 0:
			out.Stale = append(out.Stale, path)
		default:
			if err := atomicfile.Replace(path, []byte(text)); err != nil {
				return out, err
			}
			out.Units = append(out.Units, path)
		}
	}
	return out, nil
}

func unitValue(text, key string) string {
	_, rest, _ := strings.Cut(text, "\n"+key+"=")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// renewedText returns a unit's file with the wanted values and, for the rest, its own; ours reports
// whether the file is unmodified.
func renewedText(had string, want Unit) (text string, ours bool, err error) {
	value := func(key string) string { return unitValue(had, key) }
	render := func(u Unit) (string, error) {
		// The command is quoted already.
		const program = "/vmop-cli"
		u.Command = []string{program}
		text, err := u.Text()
		return strings.Replace(text, "\nExecStart="+program+"\n", "\nExecStart="+value("ExecStart")+"\n", 1), err
	}
	want.User, want.Restart = value("User"), RestartPolicy(value("Restart"))
	if text, err = render(want); err != nil {
		return had, false, nil //nolint:nilerr // it has what nobody made here
	}
	before := want
	before.Bridge = value("NoNewPrivileges") == ""
	if before.Stop, err = strconv.Atoi(value("TimeoutStopSec")); err != nil {
		return text, false, nil
	}
	was, err := render(before)
	return text, was == had, err
}
