package runner

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type resourceUser struct {
	// pid is 0 if the process is not visible, such as those of other users.
	pid        int
	executable string
	// uid is the owner if pid is 0; -1 is unknown.
	uid     int
	dataDir string
}

func (e *Engine) nameUser(u resourceUser) string {
	switch {
	case u.pid == 0 && u.uid < 0:
		return ""
	case u.pid == 0:
		owner := fmt.Sprintf("the user id %d", u.uid)
		if who, err := user.LookupId(strconv.Itoa(u.uid)); err == nil {
			owner = "the user " + who.Username
		}
		return "a process of " + owner
	case u.dataDir != "":
		name := ""
		if e.o.Machine != nil {
			name = e.o.Machine(u.dataDir)
		}
		if name == "" {
			name = "in " + u.dataDir
		}
		return fmt.Sprintf("the machine %s (process %d, %s)", name, u.pid, u.executable)
	}
	return fmt.Sprintf("process %d (%s)", u.pid, u.executable)
}

func nobody() resourceUser { return resourceUser{uid: -1} }

// imageUser returns another process that has an image open, preferably a QEMU: others may only read
// it.
func imageUser(path string) resourceUser {
	want, err := os.Stat(path)
	if err != nil {
		return nobody()
	}
	return findUser(func(fd string) bool {
		got, err := os.Stat(fd)
		return err == nil && os.SameFile(got, want)
	})
}

// portUser returns a process that listens on a port of an address; "" and unspecified addresses are
// all of them.
func portUser(protocol, address string, port int) resourceUser {
	out := nobody()
	for _, table := range []string{protocol, protocol + "6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue // for example without IPv6
		}
		for _, l := range listeners(string(text), protocol == "udp") {
			if !l.meets(address, port) {
				continue
			}
			out.uid = l.uid
			link := "socket:[" + l.inode + "]"
			if u := findUser(func(fd string) bool { got, err := os.Readlink(fd); return err == nil && got == link }); u.pid != 0 {
				return u
			}
		}
	}
	return out
}

// listener is a socket of /proc/net/tcp and the like, see proc(5).
type listener struct {
	address netip.AddrPort
	uid     int
	inode   string
}

func (l listener) meets(address string, port int) bool {
	a, err := netip.ParseAddr(address)
	return int(l.address.Port()) == port && (err != nil || a.IsUnspecified() || l.address.Addr().IsUnspecified() || l.address.Addr() == a)
}

// listeners parses such a table: TCP's listening sockets, and UDP's that are not connected.
func listeners(text string, udp bool) []listener {
	state := "0A"
	if udp {
		state = "07"
	}
	var out []listener
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // number, local and remote address, state, …, uid, timeout, inode
		if len(f) < 10 || f[3] != state {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		address, ok := procAddress(f[1])
		if err != nil || !ok {
			continue
		}
		out = append(out, listener{address: address, uid: uid, inode: f[9]})
	}
	return out
}

// procAddress parses an address of these tables: words of four bytes, each printed as a
// little-endian number.
func procAddress(text string) (netip.AddrPort, bool) {
	digits, port, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	raw, herr := hex.DecodeString(digits)
	if err != nil || herr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}

func findUser(has func(fd string) bool) resourceUser {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nobody()
	}
	out := nobody()
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil || !slices.ContainsFunc(fds, func(fd os.DirEntry) bool { return has(filepath.Join(dir, fd.Name())) }) {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", p.Name(), "exe"))
		if err != nil {
			continue // it ended meanwhile
		}
		h := Holder{PID: pid, Executable: filepath.Base(strings.TrimSuffix(exe, " (deleted)"))}
		if h.IsQEMU() {
			return resourceUser{pid: pid, executable: h.Executable, dataDir: machineOf(dir, fds)}
		}
		if out.pid == 0 {
			out = resourceUser{pid: pid, executable: h.Executable}
		}
	}
	return out
}

// machineOf returns the data directory of a QEMU's machine, by the lock that it holds; "" if no
// runner started it.
func machineOf(dir string, fds []os.DirEntry) string {
	for _, fd := range fds {
		link, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err != nil || filepath.Base(link) != LockFile {
			continue
		}
		// The runtime directory has a lock, too.
		if id, err := os.ReadFile(filepath.Join(filepath.Dir(link), uuidName)); err == nil && len(bytes.TrimSpace(id)) > 0 {
			return filepath.Dir(link)
		}
	}
	return ""
}
