package hostprobe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// NotFoundError means that there is no QEMU for x86_64.
type NotFoundError struct {
	// Searched are the places that were searched.
	Searched []string
}

func (e *NotFoundError) Error() string {
	return "no QEMU for x86_64 found (looked for " + strings.Join(e.Searched, ", ") +
		"); install it, for example: apt install qemu-system-x86, dnf install qemu-system-x86, pacman -S qemu-full, apk add qemu-system-x86_64"
}

// qemuName is QEMU's name in all distributions but RHEL.
const qemuName = "qemu-system-x86_64"

func findQEMU(given string) (string, error) {
	if given != "" {
		if p, err := exec.LookPath(given); err == nil {
			return filepath.Abs(p)
		}
		return "", &NotFoundError{Searched: []string{given}}
	}
	places := []string{"/usr/bin/" + qemuName, "/usr/local/bin/" + qemuName, "/usr/libexec/qemu-kvm"}
	if p := findExecutable(qemuName, places...); p != "" {
		return p, nil
	}
	return "", &NotFoundError{Searched: append([]string{qemuName + " in PATH"}, places...)}
}

func findExecutable(name string, places ...string) string {
	if p, err := exec.LookPath(name); err == nil {
		if abs, err := filepath.Abs(p); err == nil {
			return abs
		}
	}
	for _, p := range places {
		if executable(p) {
			return p
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// findBridgeHelper returns the path of qemu-bridge-helper, which is never in PATH, or "" if it does
// not exist.
func findBridgeHelper() string {
	for _, p := range []string{
		"/usr/lib/qemu/qemu-bridge-helper", // Debian, Arch, Alpine
		"/usr/libexec/qemu-bridge-helper",  // Fedora, RHEL
		"/usr/local/libexec/qemu-bridge-helper",
	} {
		if executable(p) {
			return p
		}
	}
	return ""
}
