package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

func (r *Report) queryIdentity(ctx context.Context, c *qmp.Client) error {
	name, err := qmp.Do(ctx, c, qmp.QueryName{})
	if err != nil {
		return err
	}
	if r.Name == "" {
		r.Name = name.Name
	}
	uuid, err := qmp.Do(ctx, c, qmp.QueryUUID{})
	if err != nil {
		return err
	}
	r.UUID = uuid.UUID
	if r.Versions.Accelerator == "" {
		kvm, err := qmp.Do(ctx, c, qmp.QueryKVM{})
		if err != nil {
			return err
		}
		r.Versions.Accelerator = "tcg"
		if kvm.Enabled {
			r.Versions.Accelerator = "kvm"
		}
	}
	if r.Versions.MachineType == "" {
		raw, err := qmp.Do(ctx, c, qmp.QOMGet{Path: "/machine", Property: "type"})
		if err != nil {
			return err
		}
		r.Versions.MachineType = strings.TrimSuffix(stringOf(raw), "-machine")
	}
	return nil
}

func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func (r *Report) queryCPUs(ctx context.Context, c *qmp.Client) error {
	slots, err := qmp.Do(ctx, c, qmp.QueryHotpluggableCPUs{})
	if err != nil {
		return err
	}
	out := &CPUs{}
	for _, s := range slots {
		out.Possible += s.VCPUsCount
		if s.QOMPath != "" {
			out.Plugged += s.VCPUsCount
		}
	}
	r.CPUs = out
	return nil
}

func (r *Report) queryMemory(ctx context.Context, c *qmp.Client) error {
	total, err := qmp.Do(ctx, c, qmp.QueryMemorySizeSummary{})
	if err != nil {
		return err
	}
	maximum := total.BaseMemory + total.PluggedMemory
	r.Memory = &Memory{Actual: maximum, Maximum: maximum}
	balloon, err := qmp.Do(ctx, c, qmp.QueryBalloon{})
	if err != nil {
		return err
	}
	r.Memory.Actual = balloon.Actual
	return nil
}

func (r *Report) queryDisks(ctx context.Context, c *qmp.Client) error {
	devices, err := qmp.Do(ctx, c, qmp.QueryBlock{})
	if err != nil {
		return err
	}
	sets, err := qmp.Do(ctx, c, qmp.QueryFDSets{})
	if err != nil {
		return err
	}
	opened := map[string]string{} // by the runner, which records the path
	for _, s := range sets {
		if len(s.FDs) > 0 && s.FDs[0].Opaque != "" {
			opened[qemucmd.FDSetPrefix+strconv.Itoa(s.ID)] = s.FDs[0].Opaque
		}
	}
	for _, d := range devices {
		id := d.Device
		if id == "" {
			id = cmp.Or(qemucmd.DeviceID(d.QDev), path.Base(d.QDev))
		}
		if d.QDev == "" {
			continue // the firmware's flash, or a node without a device
		}
		out := Disk{Device: id, Removable: d.Removable, IOStatus: d.IOStatus}
		if in := d.Inserted; in != nil {
			out.Medium, out.Node, out.ReadOnly = true, in.NodeName, in.ReadOnly
			out.File, out.Format = fileName(in.Image.Filename), in.Driver
			if path := opened[out.File]; path != "" {
				out.File = path
			}
			out.VirtualSize, out.ActualSize = in.Image.VirtualSize, in.Image.ActualSize
		}
		r.Disks = append(r.Disks, out)
	}
	return nil
}

// fileName takes the path out of the pseudo-protocol names that QEMU creates for options that no
// file name can express.
func fileName(name string) string {
	options, ok := strings.CutPrefix(name, "json:")
	if !ok {
		return name
	}
	var node struct {
		Filename string          `json:"filename"`
		URL      string          `json:"url"`
		File     json.RawMessage `json:"file"`
	}
	for range 8 { // a chain of filters is short
		if json.Unmarshal([]byte(options), &node) != nil {
			return name
		}
		switch {
		case node.Filename != "":
			return node.Filename
		case node.URL != "":
			return node.URL
		}
		options = string(node.File)
	}
	return name
}

func (r *Report) queryNetworks(ctx context.Context, c *qmp.Client) error {
	devices, err := qmp.Do(ctx, c, qmp.QOMList{Path: qemucmd.Peripheral})
	if err != nil {
		return err
	}
	for _, d := range devices {
		model, ok := strings.CutPrefix(d.Type, "child<")
		if !ok {
			continue
		}
		object := qemucmd.DevicePath(d.Name)
		mac, err := qmp.Do(ctx, c, qmp.QOMGet{Path: object, Property: "mac"})
		if errors.As(err, new(*qmp.Error)) {
			continue // no network card
		}
		if err != nil {
			return err
		}
		backend, err := qmp.Do(ctx, c, qmp.QOMGet{Path: object, Property: "netdev"})
		if err != nil && !errors.As(err, new(*qmp.Error)) {
			return err
		}
		r.Networks = append(r.Networks, Network{Device: d.Name, Model: strings.TrimSuffix(model, ">"), MAC: stringOf(mac), Backend: stringOf(backend)})
	}
	slices.SortFunc(r.Networks, func(a, b Network) int { return strings.Compare(a.Device, b.Device) })
	return nil
}

func (r *Report) queryAgents(ctx context.Context, c *qmp.Client) error {
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return err
	}
	for _, d := range chardevs {
		for _, a := range qemucmd.Agents() {
			if a.Chardev == d.Label {
				r.Agents = append(r.Agents, Agent{Name: a.Name, Connected: d.FrontendOpen})
			}
		}
	}
	slices.SortFunc(r.Agents, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
