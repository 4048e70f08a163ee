package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PortName is the name of the port in the guest.
const PortName = "org.jdrupes.vmop_agent.0"

// FindPort returns the device of a named port. udev creates links in /dev/virtio-ports; without
// udev, sysfs is searched.
func FindPort(name string) (string, error) {
	link := filepath.Join("/dev/virtio-ports", name)
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	files, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == name {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(f))), nil
		}
	}
	return "", fmt.Errorf("port %s: %w", name, os.ErrNotExist)
}
