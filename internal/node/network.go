package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// lay connects the host and the node's network namespace by a veth pair.
func (s *slot) lay(ctx context.Context, pid int) error {
	const inside = "eth0"
	host, here := s.hostAddress().String(), s.nodeAddress().String()
	in := func(args ...string) []string {
		return append([]string{"nsenter", "--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "ip"}, args...)
	}
	for _, command := range [][]string{
		{"ip", "link", "add", s.link(), "type", "veth", "peer", "name", inside, "netns", strconv.Itoa(pid)},
		{"ip", "address", "add", host + "/30", "dev", s.link()},
		{"ip", "link", "set", s.link(), "up"},
		in("link", "set", "lo", "up"),
		in("address", "add", here+"/30", "dev", inside),
		in("link", "set", inside, "up"),
		in("route", "add", "default", "via", host),
		{"ip", "route", "add", s.podNetwork(), "via", here},
	} {
		if _, err := run(ctx, command[0], command[1:]...); err != nil {
			return fmt.Errorf("network: %w", err)
		}
	}
	return nil
}

// removeLink removes a network interface that may briefly outlive its node.
func removeLink(name string) error {
	if !exists(filepath.Join("/sys/class/net", name)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := run(ctx, "ip", "link", "delete", name)
	if err != nil && !exists(filepath.Join("/sys/class/net", name)) {
		return nil // the kernel was faster
	}
	return err
}

func writeFiles(files map[string]string) error {
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
