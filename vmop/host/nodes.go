package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

type liveDisk struct {
	name string
	// node is the disk's block node; format and size (in bytes) are its content's.
	node, format string
	size         int64
	readOnly     bool
}

// findIn returns a machine's disks in its QEMU, in the same order.
func findIn(ctx context.Context, c *qmp.Client, disks []heldDisk) ([]liveDisk, error) {
	nodes, sets, err := blockNodes(ctx, c)
	if err != nil {
		return nil, err
	}
	return findDisks(disks, nodes, sets)
}

func blockNodes(ctx context.Context, c *qmp.Client) ([]qmp.BlockDeviceInfo, []qmp.FDSet, error) {
	nodes, err := qmp.Do(ctx, c, qmp.QueryNamedBlockNodes{Flat: true})
	if err != nil {
		return nil, nil, err
	}
	sets, err := qmp.Do(ctx, c, qmp.QueryFDSets{})
	return nodes, sets, err
}

// findDisks is findIn with QEMU's answers. The error is [errStartedWithout] if one of the disks is
// missing.
func findDisks(disks []heldDisk, nodes []qmp.BlockDeviceInfo, sets []qmp.FDSet) ([]liveDisk, error) {
	opened := map[string]string{}
	for _, s := range sets {
		for _, f := range s.FDs {
			opened[qemucmd.FDSetPrefix+strconv.Itoa(s.ID)] = f.Opaque
		}
	}
	byPath := map[string]qmp.BlockDeviceInfo{}
	content := slices.Collect(ports)
	for i := range nodes {
		content = append(content, qemucmd.DiskNode(i))
	}
	for _, n := range nodes {
		if !slices.Contains(content, n.NodeName) {
			continue
		}
		path := n.File
		if known := opened[path]; known != "" {
			path = known
		}
		byPath[path] = n
	}
	var out []liveDisk
	for _, d := range disks {
		n, ok := byPath[d.path]
		switch {
		case !ok:
			return nil, fmt.Errorf("disk %q: %w %s: restart it first", d.name, errStartedWithout, d.path)
		case n.Driver != string(qemucmd.DiskFormatRaw) && n.Driver != string(qemucmd.DiskFormatQCOW2):
			return nil, fmt.Errorf("disk %q: %s is used as %q, and only with raw and qcow2 images something is done while a machine runs: stop it first", d.name, d.path, n.Driver)
		}
		out = append(out, liveDisk{name: d.name, node: n.NodeName, format: n.Driver, size: n.Image.VirtualSize, readOnly: n.ReadOnly})
	}
	return out, nil
}

var errStartedWithout = errors.New("the machine was started without")

func ports(yield func(string) bool) {
	for port := range qemucmd.HotPlugPorts {
		if !yield(qemucmd.PluggedNode(port)) {
			return
		}
	}
}
