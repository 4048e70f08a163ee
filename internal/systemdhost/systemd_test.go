//go:build e2e

package systemdhost

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/child"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// patience bounds every wait: a boot takes a second, and a guest some.
const patience = 4 * time.Minute

//go:embed boot.sh
var bootScript string

const manifest = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: %s}
spec:
  vm:
    state: Running
    firmware: bios
    maximumCpus: 1
    maximumRam: 128Mi
    powerdownTimeout: 100
    kernelBoot: {kernel: /opt/vmlinuz, initrd: /opt/initrd, args: "console=ttyS0 quiet cryptomgr.notests no_timer_check reboot=t panic=-1"}
    networks: [{user: {}}]
    disks:
    - volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 64Mi}}}}
`

// host is a host of tests.
type host struct {
	t       *testing.T
	dir     string // what it writes
	opt     string // its /opt
	process *child.Process
}

// newHost has what a host needs, which does not run yet.
func newHost(t *testing.T) *host {
	if os.Geteuid() != 0 {
		t.Fatal("namespaces and users need root")
	}
	for _, file := range []string{"/lib/systemd/systemd", "/usr/share/pam-configs/systemd", "/usr/bin/dbus-daemon"} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%v; run: make deps-e2e", err)
		}
	}
	testbin.Find(t, testbin.QEMU)
	guest := testbin.TinyGuest(t)
	// A layer stands on a file system with attributes of root's, which a container's
	// own does not have.
	dir, err := os.MkdirTemp("/dev/shm", "vmop-host-")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: dir, opt: t.TempDir()}
	t.Cleanup(func() {
		h.kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(h.opt, "vmop-cli"), "github.com/vmop/sdk/frontends/cli")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, source := range map[string]string{"vmlinuz": guest.Kernel, "initrd": guest.Initrd} {
		data, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(h.opt, name), data, 0o644) //nolint:gosec // for every user of the host
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"web", "db"} {
		if err := os.WriteFile(filepath.Join(h.opt, name+".yaml"), fmt.Appendf(nil, manifest, name), 0o644); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	for _, path := range []string{h.dir, h.opt, filepath.Dir(h.opt)} {
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	return h
}

// boot starts the host and waits until systemd has started what it shall.
func (h *host) boot() {
	h.t.Helper()
	var err error
	h.process, err = child.Start(child.Command{
		Name: "systemd", Path: "/bin/sh", Args: []string{"-euc", bootScript, "boot", h.dir, h.opt, filepath.Base(h.dir)}, Dir: h.dir,
		Namespaces: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.until("systemd runs", func() (bool, string) {
		out, err := h.try("", "systemctl", "is-system-running")
		// Degraded is a host on which something did not start that no machine needs.
		return strings.TrimSpace(out) == "running" || strings.TrimSpace(out) == "degraded", fmt.Sprint(out, err)
	})
}

// powerOff shuts the host down as its administrator would.
func (h *host) powerOff() {
	h.t.Helper()
	h.as("", "systemctl", "poweroff", "--no-wall")
	select {
	case <-h.process.Done():
	case <-time.After(patience):
		h.t.Fatalf("the host goes on:\n%s", h.journal())
	}
	h.removeControlGroups()
}

// kill ends a host that runs.
func (h *host) kill() {
	if h.process != nil {
		select {
		case <-h.process.Done():
		default:
			if h.t.Failed() {
				h.t.Log(h.process.Tail(), h.journal())
			}
		}
		h.process.Stop()
		h.removeControlGroups()
	}
}

func (h *host) journal() string {
	out, err := h.try("", "journalctl", "--no-pager", "-n", "40")
	return fmt.Sprintln(out, err)
}

func (h *host) removeControlGroups() {
	for _, parent := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var groups []string
		_ = filepath.WalkDir(filepath.Join(parent, filepath.Base(h.dir)), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		slices.Reverse(groups)
		for _, group := range groups {
			_ = os.Remove(group) // one that is left holds nothing
		}
	}
}

// try runs a command in the host as a user of it, "" for root, and returns its
// output.
func (h *host) try(user string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	args := []string{"-t", strconv.Itoa(h.process.PID()), "-m", "-p", "-C", "-u", "-i", "-n"}
	env := []string{"env", "-i", "PATH=/opt:/usr/bin:/usr/sbin:/bin:/sbin", "USER=" + user}
	if user == "" {
		args = append(append(args, env...), "HOME=/root")
	} else {
		args = append(append(append(args, "setpriv", "--reuid", user, "--regid", user, "--clear-groups"), env...), "HOME=/home/"+user, "XDG_RUNTIME_DIR=/run/user/"+annUID)
	}
	out, err := exec.CommandContext(ctx, "nsenter", append(args, command...)...).CombinedOutput()
	return string(out), err
}

// as is try of a command that succeeds.
func (h *host) as(user string, command ...string) string {
	h.t.Helper()
	out, err := h.try(user, command...)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

// until waits for something; what is seen is told if it does not come.
func (h *host) until(what string, look func() (done bool, seen string)) {
	h.t.Helper()
	end := time.Now().Add(patience)
	for {
		done, seen := look()
		if done {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("not seen: %s; last: %s\n%s", what, seen, h.journal())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// state waits until a unit is in one of some states, and returns it.
func (h *host) state(user, unit string, want ...string) string {
	h.t.Helper()
	command := []string{"systemctl", "show", "--value", "-p", "SubState", unit}
	if user != "" {
		command = slices.Insert(command, 1, "--user")
	}
	var state string
	h.until(unit+" "+strings.Join(want, " or "), func() (bool, string) {
		out, err := h.try(user, command...)
		state = strings.TrimSpace(out)
		return err == nil && slices.Contains(want, state), fmt.Sprint(out, err)
	})
	return state
}

// ready waits until the guest of a machine has booted.
func (h *host) ready(socket string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	path := fmt.Sprintf("/proc/%d/root%s", h.process.PID(), socket)
	var conn net.Conn
	h.until(path, func() (bool, string) {
		var err error
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err == nil, fmt.Sprint(err)
	})
	console := tinyguest.NewConsole(conn)
	defer console.Close()
	if err := console.WaitReady(ctx); err != nil {
		h.t.Fatalf("%v\n%s", err, h.journal())
	}
}

// gone is a file that the host shall not have.
func (h *host) gone(path string) {
	h.t.Helper()
	if _, err := os.Lstat(filepath.Join(h.dir, "up", path)); !errors.Is(err, fs.ErrNotExist) {
		h.t.Errorf("%s: %v", path, err)
	}
}

const (
	ann     = "vmop-ann"
	annUID  = "4711"
	webUnit = "vmop.default.web.service"
	dbUnit  = "vmop.default.db.service"
	webData = "home/" + ann + "/.local/share/vmop/machines/default/web"
	dbData  = "root/.local/share/vmop/machines/default/db"
)

// A machine of a user who lingers and one of root's start when their host boots, and
// their guests are shut down when it is.
func TestMachinesStartAndStopWithTheirHost(t *testing.T) {
	h := newHost(t)
	h.boot()
	h.as("", "useradd", "-m", "-U", "-u", annUID, ann)
	h.as("", "loginctl", "enable-linger", ann)
	h.state("", "user@"+annUID+".service", "running")
	for user, machine := range map[string]string{ann: "web", "": "db"} {
		h.as(user, "vmop-cli", "create", "/opt/"+machine+".yaml", "--accel", "tcg")
	}
	h.as(ann, "vmop-cli", "enable", "web")
	h.as(ann, "vmop-cli", "disable", "web")
	h.gone("home/" + ann + "/.config/systemd/user/" + webUnit)
	h.gone("home/" + ann + "/.config/systemd/user/default.target.wants/" + webUnit)
	if out := h.as(ann, "vmop-cli", "enable", "web"); out != "default/web starts with this host, by /home/"+ann+"/.config/systemd/user/"+webUnit+"\n" {
		t.Errorf("enable says\n%s", out)
	}
	if out := h.as("", "vmop-cli", "enable", "db", "--system", "--restart", "always"); out != "default/db starts with this host, by /etc/systemd/system/"+dbUnit+"\n" {
		t.Errorf("enable says\n%s", out)
	}
	if out := h.as("", "systemd-analyze", "verify", "--man=no", dbUnit); out != "" {
		t.Errorf("systemd-analyze verify says\n%s", out)
	}
	h.as("", "systemd-analyze", "security", "--no-pager", "--threshold=60", dbUnit)
	h.powerOff()

	h.boot()
	webSocket := "/run/user/" + annUID + "/vmop/default/web/console.sock"
	h.ready(webSocket)
	dbSocket := "/run/vmop.default.db/vmop/default/db/console.sock"
	h.ready(dbSocket)
	h.state(ann, webUnit, "running")
	h.state("", dbUnit, "running")

	// One that was stopped stays so, whoever did it: systemd would start another again
	// that has ended.
	h.as("", "vmop-cli", "stop", "db")
	if got := h.state("", dbUnit, "dead", "auto-restart", "failed"); got != "dead" {
		t.Errorf("a machine that was stopped is %s\n%s", got, h.journal())
	}
	// Who starts one has its service start it.
	if out := h.as("", "vmop-cli", "start", "db"); !strings.Contains(out, "default/db runs ("+dbUnit+")") {
		t.Errorf("start says\n%s", out)
	}
	h.state("", dbUnit, "running")
	if out := h.as(ann, "vmop-cli", "restart", "web"); !strings.Contains(out, "default/web runs ("+webUnit+")") {
		t.Errorf("restart says\n%s", out)
	}
	h.state(ann, webUnit, "running")
	// One whose QEMU is killed does not stay so, unless somebody stops it.
	h.as("", "pkill", "-9", "-f", "guest=[d]b")
	h.state("", dbUnit, "auto-restart")
	h.as("", "vmop-cli", "stop", "db")
	h.state("", dbUnit, "dead")
	h.as("", "vmop-cli", "start", "db")
	h.ready(dbSocket)
	h.ready(webSocket)

	// What is disabled goes on, and is stopped as it should be.
	h.as("", "vmop-cli", "disable", "db")
	h.state("", dbUnit, "running")
	h.as("", "systemctl", "stop", dbUnit)
	h.gone("etc/systemd/system/" + dbUnit)
	h.gone("etc/systemd/system/multi-user.target.wants/" + dbUnit)

	h.powerOff()
	for _, dir := range []string{webData, dbData} {
		if log := child.LogTail(filepath.Join(h.dir, "up", dir, "run.log")); !strings.HasSuffix(log, "stopped: the guest shut down on request") {
			t.Errorf("the guest was not shut down with its host:\n%s", log)
		}
	}
}
