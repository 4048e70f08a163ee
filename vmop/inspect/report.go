package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// machineReport is what inspect finds out about a machine. Sizes are in bytes.
type machineReport struct {
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	UUID      string      `json:"uuid,omitempty"`
	Status    host.Status `json:"status"`
	Message   string      `json:"message,omitempty"`
	// RunState is QEMU's word for what the guest does.
	RunState qmp.RunState `json:"runState,omitempty"`
	Started  *time.Time   `json:"started,omitempty"`
	// UptimeSeconds is the time since the guest began to execute.
	UptimeSeconds int64           `json:"uptimeSeconds,omitempty"`
	Versions      versionsReport  `json:"versions"`
	CPUs          *cpusReport     `json:"cpus,omitempty"`
	Memory        *memoryReport   `json:"memory,omitempty"`
	Disks         []diskReport    `json:"disks,omitempty"`
	Networks      []networkReport `json:"networks,omitempty"`
	// Shares are the folders that the machine had at its last start.
	Shares   []shareReport   `json:"shares,omitempty"`
	Displays []displayReport `json:"displays,omitempty"`
	Agents   []agentReport   `json:"agents,omitempty"`
	// Guest is what the agents in the guest have told; nil where no runner asks.
	Guest *insideReport `json:"guest,omitempty"`
	// Conditions are those that a cluster would have in the machine's status.
	Conditions []conditionReport `json:"conditions,omitempty"`
	// Kept are the files with what else the guest depends on.
	Kept []keptReport `json:"kept,omitempty"`
	// Wanted is what the manifest says; nil where there is none.
	Wanted *wantedReport `json:"wanted,omitempty"`

	now time.Time // when it was made
}

type versionsReport struct {
	QEMU        string `json:"qemu,omitempty"`
	Runner      string `json:"runner,omitempty"`
	MachineType string `json:"machineType,omitempty"`
	Accelerator string `json:"accelerator,omitempty"`
}

type cpusReport struct {
	Plugged  int `json:"plugged"`
	Possible int `json:"possible"`
}

type memoryReport struct {
	// Actual is what the balloon leaves to the guest, Maximum the machine's RAM.
	Actual  int64 `json:"actual"`
	Maximum int64 `json:"maximum"`
}

type diskReport struct {
	// Device is the id of the guest's device.
	Device      string `json:"device"`
	Node        string `json:"node,omitempty"`
	Medium      bool   `json:"medium"`
	File        string `json:"file,omitempty"`
	Format      string `json:"format,omitempty"`
	VirtualSize int64  `json:"virtualSize,omitempty"`
	ActualSize  int64  `json:"actualSize,omitempty"`
	ReadOnly    bool   `json:"readOnly,omitempty"`
	Removable   bool   `json:"removable,omitempty"`
	IOStatus    string `json:"ioStatus,omitempty"`
	// Problem says why the file of a machine that does not run cannot be used.
	Problem string `json:"problem,omitempty"`
}

type networkReport struct {
	Device string `json:"device"`
	Model  string `json:"model"`
	MAC    string `json:"mac"`
	// Backend is the id of QEMU's network backend.
	Backend string `json:"backend,omitempty"`
}

type shareReport struct {
	Tag      string `json:"tag"`
	Dir      string `json:"dir"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Protocol string `json:"protocol"`
}

type agentReport struct {
	Name string `json:"name"`
	// Connected says that the guest has the agent's channel open.
	Connected bool `json:"connected"`
}

// report is what is known of a machine without asking QEMU.
func reportOf(m *host.Machine, now time.Time) machineReport {
	s := &m.State
	r := machineReport{
		Namespace: m.Namespace, Name: m.Name, UUID: s.UUID, Status: m.Status, Message: m.Message(),
		Versions: versionsReport{QEMU: s.QEMUVersion, Runner: s.RunnerVersion, MachineType: s.MachineType, Accelerator: string(s.Accelerator)},
	}
	for _, share := range s.Shares {
		r.Shares = append(r.Shares, shareReport(share))
	}
	if m.Running() && s.Started != nil {
		r.Started, r.UptimeSeconds = s.Started, int64(now.Sub(*s.Started).Seconds())
		r.Guest = inside(s)
	}
	if m.Running() || s.Phase == runner.PhaseStopped { // not of a runner that died
		r.Conditions, r.now = conditionsOf(m), now
	}
	return r
}

// wanted reads the manifest of a machine; nil if there is none.
func wanted(file string) (*wantedReport, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, err := spec.Load(file, data, spec.Options{Default: true, Lenient: true})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			return wants(o.VirtualMachine), nil
		}
	}
	return nil, fmt.Errorf("%s: no VirtualMachine", file)
}

// query asks QEMU.
func (r *machineReport) query(ctx context.Context, c *qmp.Client) error {
	r.Versions.QEMU = c.Greeting().Version.String()
	status, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return err
	}
	r.RunState = status.Status
	if r.Status == host.StatusRunning || r.Status == host.StatusPaused {
		r.Status = host.StatusRunning // the runner may be about to tell otherwise
		if paused(status.Status) {
			r.Status = host.StatusPaused
		}
	}
	for _, ask := range []func(context.Context, *qmp.Client) error{
		r.queryIdentity, r.queryCPUs, r.queryMemory, r.queryDisks, r.queryNetworks, r.querySPICE, r.queryVNC, r.queryAgents,
	} {
		// A QEMU that is not ours may lack devices or commands.
		if err := ask(ctx, c); err != nil && !errors.As(err, new(*qmp.Error)) {
			return err
		}
	}
	return nil
}

func (r *machineReport) queryIdentity(ctx context.Context, c *qmp.Client) error {
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
		r.Versions.MachineType = strings.TrimSuffix(text(raw), "-machine")
	}
	return nil
}

// text is a JSON string, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func (r *machineReport) queryCPUs(ctx context.Context, c *qmp.Client) error {
	slots, err := qmp.Do(ctx, c, qmp.QueryHotpluggableCPUs{})
	if err != nil {
		return err
	}
	out := &cpusReport{}
	for _, s := range slots {
		out.Possible += s.VCPUsCount
		if s.QOMPath != "" {
			out.Plugged += s.VCPUsCount
		}
	}
	r.CPUs = out
	return nil
}

func (r *machineReport) queryMemory(ctx context.Context, c *qmp.Client) error {
	total, err := qmp.Do(ctx, c, qmp.QueryMemorySizeSummary{})
	if err != nil {
		return err
	}
	maximum := total.BaseMemory + total.PluggedMemory
	r.Memory = &memoryReport{Actual: maximum, Maximum: maximum}
	balloon, err := qmp.Do(ctx, c, qmp.QueryBalloon{})
	if err != nil {
		return err
	}
	r.Memory.Actual = balloon.Actual
	return nil
}

func (r *machineReport) queryDisks(ctx context.Context, c *qmp.Client) error {
	devices, err := qmp.Do(ctx, c, qmp.QueryBlock{})
	if err != nil {
		return err
	}
	sets, err := qmp.Do(ctx, c, qmp.QueryFDSets{})
	if err != nil {
		return err
	}
	opened := map[string]string{} // by the runner, which notes the path
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
		out := diskReport{Device: id, Removable: d.Removable, IOStatus: d.IOStatus}
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

// fileName takes the path out of the pseudo-protocol names that QEMU makes of
// options that no file name can express.
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

func (r *machineReport) queryNetworks(ctx context.Context, c *qmp.Client) error {
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
		r.Networks = append(r.Networks, networkReport{Device: d.Name, Model: strings.TrimSuffix(model, ">"), MAC: text(mac), Backend: text(backend)})
	}
	slices.SortFunc(r.Networks, func(a, b networkReport) int { return strings.Compare(a.Device, b.Device) })
	return nil
}

func (r *machineReport) queryAgents(ctx context.Context, c *qmp.Client) error {
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return err
	}
	for _, d := range chardevs {
		for _, a := range qemucmd.Agents() {
			if a.Chardev == d.Label {
				r.Agents = append(r.Agents, agentReport{Name: a.Name, Connected: d.FrontendOpen})
			}
		}
	}
	slices.SortFunc(r.Agents, func(a, b agentReport) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
