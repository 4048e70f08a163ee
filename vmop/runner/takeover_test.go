package runner

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/asnobody"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Only root's files and directories are given away, and only those that the user
// has no other way to and that are nothing else besides.
func TestIsRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const user = 65532
		id := rapid.SampledFrom([]uint32{0, 6, 1000, user})
		s := unix.Stat_t{
			Uid: id.Draw(t, "user"), Gid: id.Draw(t, "group"), Nlink: rapid.Uint64Range(1, 3).Draw(t, "names"),
			Mode: rapid.SampledFrom([]uint32{unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK, unix.S_IFBLK, unix.S_IFCHR, unix.S_IFIFO, unix.S_IFSOCK}).Draw(t, "kind") | rapid.Uint32Range(0, 0o7777).Draw(t, "mode"),
		}
		directory := rapid.Bool().Draw(t, "directory")
		given := isRoots(&s, user, directory)
		kind := s.Mode & unix.S_IFMT
		switch {
		case given && s.Uid != 0:
			t.Error("it is somebody's")
		case given && kind != unix.S_IFREG && kind != unix.S_IFDIR:
			t.Error("it is neither file nor directory")
		case given && kind == unix.S_IFREG && s.Nlink > 1:
			t.Error("it has other names")
		case given && (kind == unix.S_IFDIR) != directory:
			t.Error("it is not what was expected")
		case !given && s.Uid == 0 && s.Gid != user && (directory && kind == unix.S_IFDIR || !directory && kind == unix.S_IFREG && s.Nlink == 1):
			t.Error("the user cannot use it")
		}
		s.Uid, s.Gid = user, user // what was given is not given again
		if isRoots(&s, user, directory) {
			t.Error("it is the user's")
		}
	})
}

// What VM-Operator's runner wrote as root is told of, and given to the runner's
// user by a program that may do nothing but that; what is beside it stays.
func TestTakeOverData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root has files of root: the test on the node has them, too")
		return
	}
	const nobody = 65534
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // which nobody shall pass
		t.Fatal(err)
	}
	data, disks := filepath.Join(top, "data"), filepath.Join(top, "disk")
	image := filepath.Join(disks, "disk.img")
	files := []string{data + "/uuid.txt", data + "/fw-vars.fd", data + "/tpm2-00.permall", data + "/.lock", image}
	others := []string{top + "/secret", data + "/notes.txt", data + "/fw-vars.fd.bak"}
	for _, dir := range []string{data, disks} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range slices.Concat(files, others) {
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Names that VM-Operator gives, and that lead elsewhere.
	if err := os.Symlink(top+"/secret", data+"/tpm2-00.savestate"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(data+"/notes.txt", data+"/tpm2-00.volatilestate"); err != nil {
		t.Fatal(err)
	}
	e := &Engine{}
	e.o.Directories.Data, e.o.Volumes = data, []string{data}
	e.o.Config.Runner.VM = runnerconfig.VM{Firmware: "uefi", Drives: []runnerconfig.Drive{{Type: "raw", File: image}}}
	var err error
	asnobody.Do(t, func() { err = e.checkWritable() })
	if err == nil || !strings.Contains(err.Error(), data+"/fw-vars.fd (user 0, group 0, mode 0644)") || !strings.Contains(err.Error(), "VMOP_TAKE_OVER_DATA=true") {
		t.Fatalf("a user who may write nothing is told: %v", err)
	}
	t.Log(err)
	if command := "/data/fw-vars.fd "; !strings.Contains(err.Error(), "chown 65534:65534 ") || !strings.Contains(err.Error(), command) {
		t.Errorf("no command with %s: %v", command, err)
	}

	for range 2 {
		withOneCapability(t, unix.CAP_CHOWN, func() { err = TakeOverData(nobody, data, []string{image, top + "/none/disk.img"}) })
		if err != nil {
			t.Fatal(err)
		}
	}
	owner := func(path string) uint32 {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid
	}
	for _, path := range append(files, data, disks) {
		if got := owner(path); got != nobody {
			t.Errorf("%s is user %d's", path, got)
		}
	}
	for _, path := range append(others, top, data+"/tpm2-00.savestate", data+"/tpm2-00.volatilestate") {
		if got := owner(path); got != 0 {
			t.Errorf("%s is user %d's", path, got)
		}
	}
	asnobody.Do(t, func() { err = e.checkWritable() })
	if err != nil {
		t.Errorf("the user has them: %v", err)
	}

	// Without the right to it, what has to be done is said.
	if err := os.Lchown(image, 0, 0); err != nil {
		t.Fatal(err)
	}
	withOneCapability(t, unix.CAP_NET_ADMIN, func() { err = TakeOverData(nobody, data, []string{image}) })
	if err == nil || !strings.Contains(err.Error(), "operation not permitted") || !strings.Contains(err.Error(), "chown 65534:65534 ") {
		t.Errorf("without the capability: %v", err)
	}
}

// withOneCapability runs f as root with one capability.
func withOneCapability(t *testing.T, capability uint, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		var caps [2]unix.CapUserData
		caps[0].Effective, caps[0].Permitted = 1<<capability, 1<<capability
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0])
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// The command that repairs has the paths of the node or of the server.
func TestBehindMount(t *testing.T) {
	const table = `21 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
35 21 0:40 / /run/vmop rw - tmpfs tmpfs rw
36 21 254:1 /srv/vms/web /var/local/vm-data rw,relatime - ext4 /dev/vda1 rw
37 21 0:50 / /var/local/vmop-disks/a-disk rw,relatime shared:3 master:1 - nfs4 nas.example.org:/export/a rw
38 21 0:51 /web /var/local/vmop-disks/b-disk rw - nfs nas.example.org:/ rw
39 21 254:1 /with\040space /var/local/vmop-disks/c\040disk rw - ext4 /dev/vdb rw
`
	for path, want := range map[string][2]string{
		"/var/local/vm-data":                        {"/srv/vms/web", "/dev/vda1"},
		"/var/local/vm-data/uuid.txt":               {"/srv/vms/web/uuid.txt", "/dev/vda1"},
		"/var/local/vm-data-2":                      {"/var/local/vm-data-2", "/dev/vda1"},
		"/var/local/vmop-disks/a-disk/disk.img":     {"/export/a/disk.img", "nas.example.org"},
		"/var/local/vmop-disks/b-disk/disk.img":     {"/web/disk.img", "nas.example.org"},
		"/var/local/vmop-disks/c disk/disk.img":     {"/with space/disk.img", "/dev/vdb"},
		"/var/local/vmop-disks/other-disk/disk.img": {"/var/local/vmop-disks/other-disk/disk.img", "/dev/vda1"},
	} {
		if where, system := behindMount(table, path); where != want[0] || system != want[1] {
			t.Errorf("%s is %s of %s, want %v", path, where, system, want)
		}
	}
	if got, want := chownCommand(65532, table, []string{"/var/local/vm-data", "/var/local/vm-data/uuid.txt"}), "chown 65532:65532 /srv/vms/web /srv/vms/web/uuid.txt (in the file system of /dev/vda1)"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := chownCommand(65532, "", []string{"/data"}), "chown 65532:65532 /data"; got != want {
		t.Errorf("%s", got)
	}
}

func FuzzBehindMount(f *testing.F) {
	f.Add("36 21 254:1 /srv /var rw - nfs :/ rw\n", "/var/x")
	f.Fuzz(func(t *testing.T, table, path string) { behindMount(table, path) })
}
