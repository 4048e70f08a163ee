package qemucmd_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

func TestBuildIsAFunctionOfItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		before, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		first := mustBuild(t, m, h)
		if diff := cmp.Diff(first, mustBuild(t, m, h)); diff != "" {
			t.Fatalf("the second build differs:\n%s", diff)
		}
		after, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) {
			t.Fatalf("the machine was modified:\n%s\n%s", before, after)
		}
		if diff := cmp.Diff(qemucmd.GenericHost(), h); diff != "" {
			t.Fatalf("the host was modified:\n%s", diff)
		}
	})
}

func TestEveryOptionIsNamedAndExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cmd := mustBuild(t, machine(t, imagined()), qemucmd.GenericHost())
		names := qemucmd.GroupNames()
		last := -1
		for _, g := range cmd.Groups {
			i := slices.Index(names, g.Name)
			if i <= last {
				t.Fatalf("group %q is unknown or out of order", g.Name)
			}
			last = i
			for _, o := range g.Options {
				if o.Why == "" {
					t.Fatalf("%s: %v has no reason", g.Name, o.Args())
				}
			}
		}
	})
}

// TestIDsAreUniqueAndReferencesResolve reads the rendered arguments, not the
// options: it is what QEMU will see that counts.
func TestIDsAreUniqueAndReferencesResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := qemucmd.GenericHost()
		h.JSONDevice = maybe(t, "json device")
		cmd := mustBuild(t, machine(t, imagined()), h)
		ids := map[string]bool{"pcie": true, "ide": true}
		var references []string
		for _, g := range cmd.Groups {
			for _, o := range g.Options {
				for _, p := range readOption(t, o) {
					value, isText := p.Value.(string)
					switch p.Key {
					case "id", "node-name":
						if ids[value] {
							t.Fatalf("ID %q is used twice", value)
						}
						if len(value) > 31 {
							t.Fatalf("ID %q is longer than QEMU's limit for node names", value)
						}
						ids[value] = true
					case "chardev", "netdev", "drive", "rng", "tpmdev", "audiodev", "memory-backend", "pflash0", "pflash1":
						references = append(references, value)
					case "file":
						if isText {
							references = append(references, value)
						}
					case "bus":
						device, _, _ := strings.Cut(value, ".")
						references = append(references, device)
					}
				}
			}
		}
		for _, r := range references {
			if !ids[r] {
				t.Fatalf("nothing has the ID %q", r)
			}
		}
	})
}

// addition is one device more for a machine.
type addition struct {
	// group is the only one whose options change.
	group string
	// without takes the device away, where a machine can have one; with adds it.
	without, with func(*qemucmd.Machine)
	// full reports whether the machine has no room for another.
	full func(qemucmd.Machine) bool
}

func additions() []addition {
	socket := func(name string) *qemucmd.Socket { return &qemucmd.Socket{Path: "/new/" + name} }
	spice := func(m *qemucmd.Machine) *qemucmd.SPICE {
		if m.Display != nil {
			return m.Display.SPICE
		}
		return nil
	}
	return []addition{
		{
			group: "panic", without: func(m *qemucmd.Machine) { m.PanicDevice = "" },
			with: func(m *qemucmd.Machine) { m.PanicDevice = "pvpanic-pci" },
		},
		{
			group: "panic", without: func(m *qemucmd.Machine) { m.PanicDevice = "" },
			with: func(m *qemucmd.Machine) { m.PanicDevice = "pvpanic" },
		},
		{group: "disk", with: func(m *qemucmd.Machine) {
			m.Disks = append(slices.Clip(m.Disks), qemucmd.Disk{File: "/new", BootIndex: new(1000)})
		}},
		{group: "network", with: func(m *qemucmd.Machine) {
			m.Networks = append(slices.Clip(m.Networks), qemucmd.Network{MAC: qemucmd.StableMAC("new", 1000), User: &qemucmd.UserNetwork{}})
		}},
		{
			group: "cd", full: func(m qemucmd.Machine) bool { return len(m.CDDrives) == 6 || len(m.CDDrives) == 5 && m.AnswerCD != nil },
			with: func(m *qemucmd.Machine) {
				m.CDDrives = append(slices.Clip(m.CDDrives), qemucmd.CDDrive{Image: "/new.iso"})
			},
		},
		{
			group:   "seed",
			without: func(m *qemucmd.Machine) { m.Seed = nil },
			with:    func(m *qemucmd.Machine) { m.Seed = &qemucmd.Seed{File: "/new"} },
		},
		{
			group: "answers", full: func(m qemucmd.Machine) bool { return len(m.CDDrives) == 6 },
			without: func(m *qemucmd.Machine) { m.AnswerCD = nil },
			with:    func(m *qemucmd.Machine) { m.AnswerCD = &qemucmd.AnswerCD{File: "/new"} },
		},
		{
			group:   "tpm",
			without: func(m *qemucmd.Machine) { m.TPM = nil },
			with: func(m *qemucmd.Machine) {
				m.TPM = &qemucmd.TPM{Socket: "/new/tpm", StateDir: "/new/state"}
			},
		},
		{
			group:   "serial",
			without: func(m *qemucmd.Machine) { m.Serial = nil },
			with:    func(m *qemucmd.Machine) { m.Serial = socket("serial") },
		},
		{
			group:   "channels",
			without: func(m *qemucmd.Machine) { m.GuestAgent = nil },
			with:    func(m *qemucmd.Machine) { m.GuestAgent = socket("qga") },
		},
		{
			group:   "channels",
			without: func(m *qemucmd.Machine) { m.VMOPAgent = nil },
			with:    func(m *qemucmd.Machine) { m.VMOPAgent = socket("vmop") },
		},
		{
			group:   "monitor",
			without: func(m *qemucmd.Machine) { m.ToolMonitor = nil },
			with:    func(m *qemucmd.Machine) { m.ToolMonitor = socket("tools") },
		},
		{
			group:   "spice",
			without: func(m *qemucmd.Machine) { m.Display = nil },
			with: func(m *qemucmd.Machine) {
				m.Display = &qemucmd.Display{SPICE: &qemucmd.SPICE{Socket: "/new/spice", USBRedirects: 2}}
			},
		},
		{
			group: "spice", full: func(m qemucmd.Machine) bool {
				return spice(&m) == nil || spice(&m).USBRedirects+len(m.USBDevices) == 14
			},
			with: func(m *qemucmd.Machine) {
				display, more := *m.Display, *m.Display.SPICE
				more.USBRedirects++
				display.SPICE = &more
				m.Display = &display
			},
		},
		{
			group:   "vnc",
			without: func(m *qemucmd.Machine) { m.Display = nil },
			with: func(m *qemucmd.Machine) {
				m.Display = &qemucmd.Display{VNC: &qemucmd.VNC{Socket: "/new/vnc", Password: true}}
			},
		},
	}
}

// TestDevicesKeepTheirAddresses: a device of one kind that comes or goes changes
// no option of another kind, and no device of its own kind.
func TestDevicesKeepTheirAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		add := rapid.SampledFrom(additions()).Draw(t, "what")
		if add.full != nil && add.full(m) {
			t.Skip("there is no room for another")
		}
		if add.without != nil {
			add.without(&m)
		}
		before := mustBuild(t, m, h)
		grown := m
		add.with(&grown)
		after := mustBuild(t, grown, h)
		for _, name := range qemucmd.GroupNames() {
			was, is := before.Group(name), after.Group(name)
			if name != add.group {
				if diff := cmp.Diff(render(was), render(is)); diff != "" {
					t.Fatalf("adding to %s changed %s:\n%s", add.group, name, diff)
				}
				continue
			}
			if cmp.Equal(render(was), render(is)) {
				t.Fatalf("nothing was added to %s", name)
			}
			for _, o := range was {
				if o.Flag == "-device" && !slices.ContainsFunc(is, func(n qemucmd.Option) bool { return cmp.Equal(o.Args(), n.Args()) }) {
					t.Fatalf("adding to %s changed %v", name, o.Args())
				}
			}
		}
	})
}

func render(options []qemucmd.Option) (args []string) {
	for _, o := range options {
		args = append(args, o.Args()...)
	}
	return args
}

// TestAddressesAreDistinct up to the capacity of the bus.
func TestAddressesAreDistinct(t *testing.T) {
	for addresses, slots := range map[int]int{1: 14, 2: 12} {
		m := fullBus(addresses, slots)
		seen := map[string]string{}
		for _, g := range mustBuild(t, m, qemucmd.GenericHost()).Groups {
			for _, o := range g.Options {
				for _, p := range o.Props {
					if p.Key != "addr" || o.Flag != "-device" {
						continue
					}
					addr := string(p.Value.(qemucmd.Str))
					if seen[addr] != "" {
						t.Errorf("%s and %s have the address %s", seen[addr], o.ID, addr)
					}
					seen[addr] = o.ID
				}
			}
		}
		if want := 6 + slots*8 + 9*8 + 2 + 8*(addresses-1); len(seen) != want {
			t.Errorf("%d addresses, want %d", len(seen), want)
		}
		m.Disks = append(m.Disks, qemucmd.Disk{File: "/more"})
		if _, err := qemucmd.Build(m, qemucmd.GenericHost()); err == nil {
			t.Errorf("map %d has room for %d disks", addresses, len(m.Disks))
		}
	}
}

// fullBus is a machine with as many disks and network cards as a map has room
// for.
func fullBus(addresses, slots int) qemucmd.Machine {
	m := small()
	m.AddressMap = addresses
	m.Seed, m.PanicDevice = &qemucmd.Seed{File: "/seed"}, "pvpanic-pci"
	for i := range slots * 8 {
		m.Disks = append(m.Disks, qemucmd.Disk{File: "/disk" + qemucmd.Int(i).String()})
	}
	for i := range 9 * 8 {
		m.Networks = append(m.Networks, qemucmd.Network{MAC: qemucmd.StableMAC("x", i), User: &qemucmd.UserNetwork{}})
	}
	return m
}

// TestTextIsLiteral: no text of a machine, whatever it contains, changes the
// properties that an option has.
func TestTextIsLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := qemucmd.GenericHost()
		h.JSONDevice = maybe(t, "json device")
		m := machine(t, imagined())
		for _, g := range mustBuild(t, m, h).Groups {
			for _, o := range g.Options {
				var want []property
				if len(o.Args()) == 1 {
					continue
				}
				if o.Head != "" {
					want = append(want, property{o.HeadKey, o.Head})
				}
				if o.ID != "" {
					key := "id"
					if o.Flag == "-blockdev" {
						key = "node-name"
					}
					want = append(want, property{key, o.ID})
				}
				for _, p := range o.Props {
					want = append(want, property{p.Key, plainValue(o.JSON, p.Value)})
				}
				if diff := cmp.Diff(want, readOption(t, o)); diff != "" {
					t.Fatalf("QEMU would read %q differently:\n%s", o.Args(), diff)
				}
			}
		}
	})
}

// TestTopologyFits: the parts' product is the maximum, and what was given stays.
func TestTopologyFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := small()
		small := rapid.IntRange(0, 6)
		m.CPU = qemucmd.CPU{Maximum: rapid.IntRange(0, 64).Draw(t, "maximum"), Sockets: small.Draw(t, "sockets"), Dies: small.Draw(t, "dies"), Cores: small.Draw(t, "cores"), Threads: small.Draw(t, "threads")}
		m.Accelerator = rapid.SampledFrom([]qemucmd.Accelerator{qemucmd.AcceleratorTCG, qemucmd.AcceleratorKVM}).Draw(t, "accelerator")
		cmd, err := qemucmd.Build(m, qemucmd.GenericHost())
		given, complete := 1, true
		for _, n := range []int{m.CPU.Sockets, m.CPU.Dies, m.CPU.Cores, m.CPU.Threads} {
			given *= max(n, 1)
			complete = complete && n > 0
		}
		possible := m.CPU.Maximum == 0 || given == m.CPU.Maximum || !complete && m.CPU.Maximum%given == 0
		if m.CPU.Maximum == 0 && given > 288 {
			possible = false
		}
		// No maximum that is drawn needs as many; parts alone do, such as 5 x 5 x 5.
		if m.Accelerator == qemucmd.AcceleratorTCG && limits.APICIDs(max(m.CPU.Sockets, 1), max(m.CPU.Dies, 1), max(m.CPU.Cores, 1), max(m.CPU.Threads, 1)) > limits.MaxTCGAPICIDs {
			possible = false
		}
		if possible != (err == nil) {
			t.Fatalf("%+v: %v", m.CPU, err)
		}
		if err != nil {
			return
		}
		var smp map[string]string
		for _, o := range cmd.Group("cpu") {
			if o.Flag == "-smp" {
				smp = map[string]string{}
				for _, p := range readOption(t, o) {
					smp[p.Key] = p.Value.(string)
				}
			}
		}
		product := 1
		for key, n := range map[string]int{"sockets": m.CPU.Sockets, "dies": m.CPU.Dies, "cores": m.CPU.Cores, "threads": m.CPU.Threads} {
			got := atoi(t, smp[key])
			if n != 0 && got != n {
				t.Fatalf("%s: %d given, %d built", key, n, got)
			}
			product *= got
		}
		if maxcpus := atoi(t, smp["maxcpus"]); product != maxcpus || m.CPU.Maximum != 0 && maxcpus != m.CPU.Maximum {
			t.Fatalf("%v does not fit %+v", smp, m.CPU)
		}
		if smp["cpus"] != "1" {
			t.Fatalf("%v starts with more than one CPU", smp)
		}
		threads := ""
		for _, o := range cmd.Group("accelerator") {
			if o.Flag == "-accel" {
				for _, p := range readOption(t, o) {
					if p.Key == "thread" {
						threads = p.Value.(string)
					}
				}
			}
		}
		if emulated := m.Accelerator == qemucmd.AcceleratorTCG; emulated && (threads == "single") != (smp["maxcpus"] != "1") || !emulated && threads != "" {
			t.Fatalf("%v CPUs with %q: thread=%s", smp["maxcpus"], m.Accelerator, threads)
		}
	})
}

func TestCommandMarshalsWithItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cmd := mustBuild(t, machine(t, imagined()), qemucmd.GenericHost())
		data, err := json.Marshal(cmd)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Executable  string
			Args        []string
			MachineType string
			Accelerator qemucmd.Accelerator
			Files       []qemucmd.File
			Sockets     []qemucmd.NamedSocket
			Helpers     []qemucmd.Helper
		}
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if back.Executable != cmd.Executable || !slices.Equal(back.Args, cmd.Args()) || back.MachineType != cmd.MachineType ||
			back.Accelerator != cmd.Accelerator || !reflect.DeepEqual(back.Files, cmd.Files) ||
			!reflect.DeepEqual(back.Sockets, cmd.Sockets) || !reflect.DeepEqual(back.Helpers, cmd.Helpers) {
			t.Fatalf("%s is not %+v", data, cmd)
		}
	})
}

func TestStableMAC(t *testing.T) {
	if got, want := qemucmd.StableMAC("7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01", 0), "a6:ef:72:72:2b:77"; got != want {
		t.Errorf("the address of existing machines changed: %s, was %s", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		seed, i := rapid.String().Draw(t, "seed"), rapid.IntRange(0, 100).Draw(t, "index")
		m := small()
		m.Networks = []qemucmd.Network{
			{MAC: qemucmd.StableMAC(seed, i), User: &qemucmd.UserNetwork{}},
			{MAC: qemucmd.StableMAC(seed, i+1), User: &qemucmd.UserNetwork{}},
		}
		mustBuild(t, m, qemucmd.GenericHost()) // which refuses multicast and equal addresses
		if m.Networks[0].MAC != qemucmd.StableMAC(seed, i) {
			t.Fatal("not stable")
		}
	})
}
