package qemucmd_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestDevicesKeepTheirAddresses: adding a device behind the others changes no
// option of any other device.
func TestDevicesKeepTheirAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		before := mustBuild(t, m, h)
		grown := m
		var group string
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			group = "disk"
			grown.Disks = append(slices.Clip(m.Disks), qemucmd.Disk{File: "/new", BootIndex: ptr(1000)})
		case 1:
			group = "network"
			grown.Networks = append(slices.Clip(m.Networks), qemucmd.Network{MAC: qemucmd.StableMAC("new", 1000), User: &qemucmd.UserNetwork{}})
		case 2:
			if len(m.CDDrives) == 6 {
				t.Skip("there is no seventh drive")
			}
			group = "cd"
			grown.CDDrives = append(slices.Clip(m.CDDrives), qemucmd.CDDrive{Image: "/new.iso"})
		case 3:
			group = "seed"
			m.Seed = nil
			before = mustBuild(t, m, h)
			grown = m
			grown.Seed = &qemucmd.Seed{File: "/new"}
		}
		after := mustBuild(t, grown, h)
		for _, name := range qemucmd.GroupNames() {
			was, is := before.Group(name), after.Group(name)
			if name == group {
				if len(is) <= len(was) {
					t.Fatalf("nothing was added to %s", name)
				}
				is = is[:len(was)]
			}
			if diff := cmp.Diff(render(was), render(is)); diff != "" {
				t.Fatalf("adding to %s changed %s:\n%s", group, name, diff)
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
	m := small()
	m.Seed = &qemucmd.Seed{File: "/seed"}
	for i := range 14 * 8 {
		m.Disks = append(m.Disks, qemucmd.Disk{File: "/disk" + qemucmd.Int(i).String()})
	}
	for i := range 9 * 8 {
		m.Networks = append(m.Networks, qemucmd.Network{MAC: qemucmd.StableMAC("x", i), User: &qemucmd.UserNetwork{}})
	}
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
	if want := 6 + 14*8 + 9*8 + 1; len(seen) != want {
		t.Errorf("%d addresses, want %d", len(seen), want)
	}
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
