package hostprobe

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
)

const helpTimeout = 10 * time.Second

// findVirtioFSD finds virtiofsd, the newest first: in Debian 12 it is at the path of the former
// server.
func findVirtioFSD(ctx context.Context) qemucmd.VirtioFSD {
	path := findExecutable("virtiofsd",
		"/usr/libexec/virtiofsd", // Debian 13, Fedora
		"/usr/lib/virtiofsd",     // Arch, Alpine
		"/usr/local/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd")
	if path == "" {
		return qemucmd.VirtioFSD{}
	}
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	help, _ := exec.CommandContext(ctx, path, "--help").CombinedOutput() // its output is judged instead
	v := judgeVirtioFSD(help)
	v.Path, v.Root = path, os.Geteuid() == 0
	// As root, virtiofsd creates no user namespace.
	user := uintptr(syscall.CLONE_NEWUSER)
	if v.Root {
		user = 0
	}
	v.Namespaces = mayUnshare(ctx, path, user)
	return v
}

func judgeVirtioFSD(help []byte) qemucmd.VirtioFSD {
	return qemucmd.VirtioFSD{
		Former:   !bytes.Contains(help, []byte("--shared-dir")),
		ReadOnly: bytes.Contains(help, []byte("--readonly")),
	}
}

// mayUnshare reports whether a program can be started in the namespaces that virtiofsd creates.
func mayUnshare(ctx context.Context, program string, user uintptr) bool {
	cmd := exec.CommandContext(ctx, program, "--help")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: user | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	if user != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	if cmd.Start() != nil {
		return false
	}
	_ = cmd.Wait() // starting it was the test
	return true
}
