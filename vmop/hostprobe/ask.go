package hostprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"golang.org/x/sys/unix"
)

const (
	// askTimeout bounds all queries together, which take 0.2 seconds.
	askTimeout  = 30 * time.Second
	quitTimeout = 2 * time.Second
)

func askQEMU(ctx context.Context, qemu string) (h qemucmd.Host, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	// A pair of sockets needs no path, and is connected from the start.
	conn, theirs, err := socketPair()
	if err != nil {
		return h, err
	}
	run, err := start(ctx, qemu, []*os.File{theirs},
		"-machine", "none", "-nodefaults", "-no-user-config", "-S", "-display", "none",
		"-chardev", "socket,id=monitor,fd=3", "-mon", "chardev=monitor,mode=control")
	closeErr := theirs.Close()
	if err = errors.Join(err, closeErr); err != nil {
		return h, errors.Join(err, conn.Close())
	}
	defer func() {
		if runErr := run.end(quitTimeout); err != nil {
			err = errors.Join(err, runErr) // QEMU's messages before it ended
		}
	}()

	client, err := qmp.NewClient(ctx, conn, qmp.Options{})
	if err != nil {
		return h, err
	}
	defer client.Close()
	h, err = query(ctx, client)
	// QEMU may close the connection before it answers quit.
	_, _ = client.Execute(ctx, "quit", nil)
	return h, err
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "monitor"), os.NewFile(uintptr(fds[1]), "monitor")
	conn, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

func query(ctx context.Context, c *qmp.Client) (qemucmd.Host, error) {
	var h qemucmd.Host
	var version struct{ QEMU qemucmd.Version }
	var machines []struct {
		Name       string `json:"name"`
		Alias      string `json:"alias"`
		MaxCPUs    int    `json:"cpu-max"`
		Deprecated bool   `json:"deprecated"`
	}
	var devices, chardevs []struct {
		Name string `json:"name"`
	}
	var schema []struct {
		Name     string   `json:"name"`
		Features []string `json:"features"`
	}
	concrete := func(of string) any { return map[string]any{"implements": of, "abstract": false} }
	for _, q := range []struct {
		command string
		args    any
		result  any
	}{
		{"query-version", nil, &version},
		{"query-machines", nil, &machines},
		{"qom-list-types", concrete("device"), &devices},
		{"qom-list-types", concrete("chardev"), &chardevs},
		{"query-qmp-schema", nil, &schema},
	} {
		reply, err := c.Execute(ctx, q.command, q.args)
		if err != nil {
			return h, fmt.Errorf("%s: %w", q.command, err)
		}
		if err := json.Unmarshal(reply, q.result); err != nil {
			return h, fmt.Errorf("%s: %w", q.command, err)
		}
	}
	drivers, err := blockDrivers(ctx, c)
	if err != nil {
		return h, err
	}

	h.Version = version.QEMU
	for _, m := range machines {
		if m.Alias == "q35" || m.Alias == "pc" || strings.HasPrefix(m.Name, "pc-") {
			h.MachineTypes = append(h.MachineTypes, qemucmd.MachineType{Name: m.Name, Alias: m.Alias, MaxCPUs: m.MaxCPUs, Deprecated: m.Deprecated})
		}
	}
	slices.SortFunc(h.MachineTypes, func(a, b qemucmd.MachineType) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range devices {
		h.Devices = append(h.Devices, d.Name)
	}
	slices.Sort(h.Devices)
	h.BlockDrivers = drivers
	for _, n := range qemucmd.ServerNeeds() {
		found := false
		for _, d := range chardevs {
			found = found || n.Type != "" && d.Name == n.Type
		}
		for _, e := range schema {
			found = found || n.Command != "" && e.Name == n.Command
		}
		h.SetServes(n.Protocol, found)
	}
	for _, e := range schema {
		if e.Name == "device_add" {
			h.JSONDevice = slices.Contains(e.Features, "json-cli-hotplug")
		}
	}
	return h, nil
}

// blockDrivers returns the available drivers among those that a command line can need. QEMU's
// schema and its help list drivers whose module is not installed, so each is opened in a way that
// must fail or is harmless; the error distinguishes a missing driver.
func blockDrivers(ctx context.Context, c *qmp.Client) ([]string, error) {
	type object map[string]any
	nowhere := "/nonexistent/vmop-probe"
	empty := object{"driver": "null-co", "size": 0}
	// The invalid read-ahead is refused before a connection is tried.
	url := "://127.0.0.1:1/"
	var found []string
	for _, d := range []object{ // sorted by name
		{"driver": "file", "filename": nowhere},
		{"driver": "host_device", "filename": nowhere},
		{"driver": "http", "url": "http" + url, "readahead": 1},
		{"driver": "https", "url": "https" + url, "readahead": 1},
		{"driver": "qcow2", "file": empty},
		{"driver": "raw", "file": empty},
	} {
		name := d["driver"].(string)
		d["node-name"] = "probe-" + name
		_, err := c.Execute(ctx, "blockdev-add", d)
		var refused *qmp.Error
		switch {
		case err == nil:
		case !errors.As(err, &refused):
			return nil, fmt.Errorf("blockdev-add %s: %w", name, err)
		case strings.Contains(refused.Desc, "Unknown driver"), strings.Contains(refused.Desc, "whitelisted"):
			continue
		}
		found = append(found, name)
	}
	return found, nil
}
