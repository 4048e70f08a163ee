package qemucmd_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// releases are QEMU's versions from the oldest to the newest.
var releases = []string{"6.0", "6.2", "7.0", "7.2", "8.2", "9.2", "10.0", "10.1"}

// offers is what the release at this place offers: its own type under the alias,
// older ones behind it, of which the oldest are deprecated, and types of the
// other family.
func offers(t *rapid.T, release int) []qemucmd.MachineType {
	oldest := rapid.IntRange(0, release).Draw(t, "oldest")
	deprecated := rapid.IntRange(oldest, release).Draw(t, "deprecated")
	var types []qemucmd.MachineType
	for i := oldest; i <= release; i++ {
		q35 := qemucmd.MachineType{Name: "pc-q35-" + releases[i], MaxCPUs: 288, Deprecated: i < deprecated}
		if i == release {
			q35.Alias = "q35"
		}
		types = append(types, q35, qemucmd.MachineType{Name: "pc-i440fx-" + releases[i], MaxCPUs: 255})
	}
	return rapid.Permutation(types).Draw(t, "order")
}

// TestMachineTypeNeverMovesByItself follows a machine through starts with
// changing QEMUs and manifests. Only a versioned type moves it.
func TestMachineTypeNeverMovesByItself(t *testing.T) {
	types := append([]string{"", "", "", "q35", "pc-i440fx-7.2", "none"}, "pc-q35-7.0", "pc-q35-7.2", "pc-q35-9.2", "pc-q35-10.0")
	rapid.Check(t, func(t *rapid.T) {
		recorded := ""
		for range rapid.IntRange(1, 8).Draw(t, "starts") {
			release := rapid.IntRange(0, len(releases)-1).Draw(t, "release")
			offered := offers(t, release)
			before := slices.Clone(offered)
			desired := rapid.SampledFrom(types).Draw(t, "desired")
			got, err := qemucmd.ChooseMachineType(desired, recorded, offered)
			again, err2 := qemucmd.ChooseMachineType(desired, recorded, offered)
			if got != again || (err == nil) != (err2 == nil) || !slices.Equal(before, offered) {
				t.Fatal("not a function of its arguments")
			}
			is := func(name string) bool {
				return slices.ContainsFunc(offered, func(o qemucmd.MachineType) bool { return o.Name == name })
			}
			demanded := desired
			if desired == "" || desired == "q35" {
				demanded = recorded
			}
			if err != nil {
				if demanded == "" || is(demanded) && strings.HasPrefix(demanded, "pc-q35-") {
					t.Fatalf("refused %q, recorded %q: %v", desired, recorded, err)
				}
				field := "type"
				if demanded != desired {
					field = "recordedType"
				}
				if p := qemucmd.Problems(err); len(p) != 1 || p[0].Field != field || !strings.Contains(p[0].Message, demanded) {
					t.Fatalf("%v; want the field %s and the type %s", err, field, demanded)
				}
				continue // nothing is recorded
			}
			if !slices.Contains(offered, got) || !strings.HasPrefix(got.Name, "pc-q35-") {
				t.Fatalf("%+v is not offered", got)
			}
			if demanded == "" {
				demanded = "pc-q35-" + releases[release]
			}
			if got.Name != demanded {
				t.Fatalf("desired %q, recorded %q: got %s", desired, recorded, got.Name)
			}
			recorded = got.Name
		}
	})
}

// TestUpgradedQEMU: the command line stays, byte for byte, when QEMU gets newer,
// and says so when it will not for ever.
func TestUpgradedQEMU(t *testing.T) {
	newer := func() qemucmd.Host {
		h := qemucmd.GenericHost()
		h.Version = qemucmd.Version{Major: 10, Minor: 1}
		h.MachineTypes[1].Alias = ""
		h.MachineTypes = append(h.MachineTypes, qemucmd.MachineType{Name: "pc-q35-10.1", Alias: "q35", MaxCPUs: 4096}, qemucmd.MachineType{Name: "pc-q35-9.2", MaxCPUs: 4096})
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		m := machine(t, imagined())
		before := mustBuild(t, m, qemucmd.GenericHost())
		m.RecordedType = before.MachineType
		after := mustBuild(t, m, newer())
		if diff := cmp.Diff(before.Args(), after.Args()); diff != "" || after.MachineType != before.MachineType {
			t.Fatalf("%s became %s:\n%s", before.MachineType, after.MachineType, diff)
		}
	})

	m := small()
	m.RecordedType = "pc-q35-7.2"
	h := newer()
	h.MachineTypes[1].Deprecated = true
	cmd := mustBuild(t, m, h)
	if len(cmd.Warnings) != 1 || !strings.Contains(cmd.Warnings[0], "pc-q35-7.2 is deprecated in QEMU 10.1.0") || !strings.Contains(cmd.Warnings[0], "spec.vm.machineType") {
		t.Errorf("warnings %q", cmd.Warnings)
	}
	h.MachineTypes = slices.Delete(h.MachineTypes, 1, 2)
	_, err := qemucmd.Build(m, h)
	if p := qemucmd.Problems(err); len(p) != 1 || p[0].Field != "recordedType" || !strings.Contains(p[0].Message, "does not offer it any more") || !strings.Contains(p[0].Message, "spec.vm.machineType") {
		t.Errorf("a type that is gone: %v", err)
	}
	// The field moves it, and it stays there when the field is gone again.
	m.Type = "pc-q35-9.2"
	m.RecordedType = mustBuild(t, m, h).MachineType
	m.Type = ""
	if got := mustBuild(t, m, h).MachineType; got != "pc-q35-9.2" {
		t.Errorf("moved to %s", got)
	}
}

// TestCommonDevicesKeepTheirAddresses: whatever else differs between two
// machines, a device that both have is at the same place in both.
func TestCommonDevicesKeepTheirAddresses(t *testing.T) {
	places := func(t *rapid.T, m qemucmd.Machine) map[string]string {
		at := map[string]string{}
		for _, g := range mustBuild(t, m, qemucmd.GenericHost()).Groups {
			for _, o := range g.Options {
				if o.Flag != "-device" || o.ID == "" {
					continue
				}
				place := ""
				for _, p := range o.Props {
					if slices.Contains([]string{"bus", "addr", "multifunction", "nr", "port", "index"}, p.Key) {
						place += " " + (qemucmd.Option{Flag: "-x", Props: []qemucmd.Prop{p}}).Args()[1]
					}
				}
				at[o.ID] = place
			}
		}
		return at
	}
	rapid.Check(t, func(t *rapid.T) {
		first, second := machine(t, imagined()), machine(t, imagined())
		second.AddressMap, second.FirstDiskSlot = first.AddressMap, first.FirstDiskSlot
		if first.AddressMap != 2 {
			second.Shares = nil
		}
		one, other := places(t, first), places(t, second)
		for id, place := range one {
			if elsewhere, both := other[id]; both && place != elsewhere {
				t.Fatalf("%s is at%s and at%s", id, place, elsewhere)
			}
			if place == "" && id != "tpm-tis0" && id != qemucmd.GenerationDeviceID && id != qemucmd.PanicPortID { // whose places the PC has fixed
				t.Fatalf("%s has no fixed place", id)
			}
		}
	})
}

// TestAddressesAreForEver pins where devices are by their position: a machine
// that exists must find them there after every change of this package.
func TestAddressesAreForEver(t *testing.T) {
	for _, c := range []struct {
		addresses, slots int
		want             map[string]string
	}{
		{0, 14, map[string]string{
			"disk13": "0x1d", "disk14": "0x10.0x1", "disk27": "0x1d.0x1", "disk28": "0x10.0x2", "disk111": "0x1d.0x7",
		}},
		{1, 14, map[string]string{
			"disk13": "0x1d", "disk14": "0x10.0x1", "disk27": "0x1d.0x1", "disk28": "0x10.0x2", "disk111": "0x1d.0x7",
		}},
		{2, 12, map[string]string{
			"disk11": "0x1b", "disk12": "0x10.0x1", "disk23": "0x1b.0x1", "disk24": "0x10.0x2", "disk95": "0x1b.0x7",
			"port0": "0x1d", "port1": "0x1d.0x1", "port6": "0x1d.0x6", "port7": "0x1d.0x7",
		}},
	} {
		got := map[string]string{}
		for _, g := range mustBuild(t, fullBus(c.addresses, c.slots), qemucmd.GenericHost()).Groups {
			for _, o := range g.Options {
				for _, p := range o.Props {
					if o.Flag == "-device" && p.Key == "addr" {
						got[o.ID] = string(p.Value.(qemucmd.Str))
					}
				}
			}
		}
		maps.Copy(c.want, map[string]string{
			"balloon0": "0x1", "virtio-serial0": "0x2", "usb": "0x3", "rng0": "0x4", "video0": "0x5", "sound0": "0x6", "seed": "0x1e",
			"net0": "0x7", "net1": "0x8", "net8": "0xf", "net9": "0x7.0x1", "net17": "0xf.0x1", "net18": "0x7.0x2", "net71": "0xf.0x7",
			"disk0": "0x10", "disk1": "0x11",
		})
		for id, want := range c.want {
			if got[id] != want {
				t.Errorf("map %d: %s is at %s, and was at %s", c.addresses, id, got[id], want)
			}
		}
	}
}

func TestGenerationIsForEver(t *testing.T) {
	m := small()
	m.AddressMap = 2
	text := func(m qemucmd.Machine) string {
		return mustBuild(t, m, qemucmd.GenericHost()).Group("generation")[0].Argument()
	}
	if got, want := text(m), `{"driver":"vmgenid","id":"generation0","guid":"b15f0575-3635-8533-8273-96e416d60d76"}`; got != want {
		t.Errorf("the generation of machines that exist was %s, and is %s", want, got)
	}
	upper := m
	upper.UUID = strings.ToUpper(m.UUID)
	if text(upper) != text(m) {
		t.Error("it depends on how the UUID is written")
	}
	m.GenerationID = "0b0d0e0f-0000-4000-8000-000000000001"
	if got := text(m); !strings.Contains(got, m.GenerationID) {
		t.Error(got)
	}
}
