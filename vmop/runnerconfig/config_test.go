package runnerconfig_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A size written is the same size read, in VM-Operator's own syntax.
func TestBytesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int64{1, 1e3, 1e6, 1e9, 1 << 10, 1 << 20, 1 << 30, 1 << 40}).Draw(t, "unit")
		b := runnerconfig.Bytes(rapid.Int64Range(0, (1<<62)/unit).Draw(t, "n") * unit)
		got, err := runnerconfig.ParseBytes(b.String())
		if err != nil || got != b {
			t.Fatalf("%d was written as %q and read as %d, %v", b, b, got, err)
		}
	})
}

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want runnerconfig.Bytes
		out  string
	}{
		{"8 GiB", 8 << 30, "8 GiB"},
		{"1 GB", 1e9, "1 GB"},
		{"1G", 1e9, "1 GB"},
		{"4Gi", 4 << 30, "4 GiB"},
		{"1536 MiB", 1536 << 20, "1536 MiB"},
		{"2000 MiB", 2000 << 20, "2000 MiB"},
		{"1000 KiB", 1000 << 10, "1000 KiB"},
		{"12345", 12345, "12345"},
		{"1.5 GiB", 1536 << 20, "1536 MiB"},
		{"0", 0, "0"},
	} {
		got, err := runnerconfig.ParseBytes(tt.in)
		if err != nil || got != tt.want || got.String() != tt.out {
			t.Errorf("%q: %d %q, %v; want %d %q", tt.in, got, got, err, tt.want, tt.out)
		}
	}
	for _, bad := range []string{"", "GiB", "1 gib", "-1", "1.5", "1e9", "9 EiB", "0x10", "1,5 GiB", strings.Repeat("9", 100)} {
		if got, err := runnerconfig.ParseBytes(bad); err == nil {
			t.Errorf("%q was read as %d", bad, got)
		}
	}
}

// What VM-Operator's controller writes is read as it is meant.
func TestParseVMOperatorsFile(t *testing.T) {
	data, err := os.ReadFile("testdata/vm-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := runnerconfig.Parse(data)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", warnings, err)
	}
	runnerconfig.Default(&c)
	if err := runnerconfig.Validate(&c); err != nil {
		t.Fatal(err)
	}
	vm := c.Runner.VM
	if vm.MaximumRAM != 4<<30 || vm.CurrentRAM != 2<<30 || vm.MaximumCPUs != 4 || vm.CurrentCPUs != 2 || *vm.PowerdownTimeout != 1 {
		t.Errorf("%+v", vm)
	}
	if d := vm.Display; d.SPICE.StreamingVideo != "filter" || *d.SPICE.Port != 5812 || d.Outputs != 2 {
		t.Errorf("%+v %+v", d, d.SPICE)
	}
	if got := string(c.Runner.CloudInit.UserData); got != `{"runcmd":["echo 1.0"],"a":1.0,"/dev/vdb":{"size":9007199254740993}}` {
		t.Errorf("user data %s", got)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, in, err, warning string }{
		{"no runner", "a: 1\n", `"/Runner"`, ""},
		{"not a mapping", "- 1\n", "want a mapping", ""},
		{"empty", "", `"/Runner" is missing`, ""},
		{"two runners", "/Runner: {}\n_Runner: {}\n", `line 2: key "_Runner" is the same as that of line 1`, ""},
		{"duplicate key", "/Runner: {vm: {name: a, name: b}}\n", `line 1: duplicate key "name"`, ""},
		{"wrong type", "/Runner: {vm: {maximumCpus: many}}\n", `line 1: /Runner.vm.maximumCpus: found the text "many", want a whole number`, ""},
		{"bad size", "/Runner: {vm: {maximumRam: 4 gibibyte}}\n", `"4 gibibyte" has the unknown unit "gibibyte"`, ""},
		{"unknown key", "/Runner: {vm: {name: a, drives: [{typo: 1}]}}\n", "", "/Runner.vm.drives[0].typo: unknown key"},
		{"half a file", "/Runner:\n  vm: {name: a\n", "yaml: line", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, warnings, err := runnerconfig.Parse([]byte(tt.in))
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.warning != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], tt.warning)) {
				t.Errorf("warnings %q, want %q", warnings, tt.warning)
			}
		})
	}
}

// No network at all is VM-Operator's default interface, null is none.
func TestNetworkMissingAndNull(t *testing.T) {
	for in, want := range map[string]int{"/Runner: {vm: {name: a}}": 1, "/Runner: {vm: {name: a, network: null}}": 0, "/Runner: {vm: {name: a, network: []}}": 0} {
		c, _, err := runnerconfig.Parse([]byte(in))
		if err != nil || len(c.Runner.VM.Network) != want {
			t.Errorf("%s: %v, %v; want %d", in, c.Runner.VM.Network, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*runnerconfig.VM)
		want   []string
	}{
		{"fine", func(*runnerconfig.VM) {}, nil},
		{"name", func(vm *runnerconfig.VM) { vm.Name = "../x" }, []string{"vm.name"}},
		{"everything at once", func(vm *runnerconfig.VM) {
			vm.UUID, vm.Firmware, vm.MaximumCPUs, vm.RTCBase = "x", "y", -1, "z"
		}, []string{"vm.uuid", "vm.firmware", "vm.rtcBase", "vm.maximumCpus"}},
		{"start date", func(vm *runnerconfig.VM) { vm.RTCBase = "2026-01-02T03:04:05" }, nil},
		{"balloon", func(vm *runnerconfig.VM) { vm.CurrentRAM = vm.MaximumRAM + 1 }, []string{"vm.currentRam"}},
		{"two drives on one disk", func(vm *runnerconfig.VM) {
			vm.Drives = []runnerconfig.Drive{{Type: "raw", File: "/a"}, {Type: "raw", Resource: "/a"}}
		}, []string{"vm.drives[1]"}},
		{"a drive without anything", func(vm *runnerconfig.VM) { vm.Drives = []runnerconfig.Drive{{Type: "raw"}} }, []string{"vm.drives[0]"}},
		{"boot index twice", func(vm *runnerconfig.VM) {
			one := 1
			vm.Drives = []runnerconfig.Drive{{Type: "ide-cd", BootIndex: &one}, {Type: "ide-cd", BootIndex: &one}}
		}, []string{"vm.drives[1].bootindex"}},
		{"multicast", func(vm *runnerconfig.VM) {
			vm.Network = []runnerconfig.Network{{Type: "tap", MAC: "01:00:00:00:00:00"}}
		}, []string{"vm.network[0].mac"}},
		{"one address twice", func(vm *runnerconfig.VM) {
			vm.Network = []runnerconfig.Network{{Type: "tap", MAC: "02:00:00:00:00:0a"}, {Type: "tap", MAC: "02-00-00-00-00-0A"}}
		}, []string{"vm.network[1].mac"}},
		{"forward through a bridge", func(vm *runnerconfig.VM) {
			vm.Network = []runnerconfig.Network{{Type: "tap", HostForwards: []runnerconfig.HostForward{{HostPort: 1, GuestPort: 0}}}}
		}, []string{"vm.network[0]", "vm.network[0].hostForwards[0].guestPort"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm"}}}
			runnerconfig.Default(&c)
			tt.change(&c.Runner.VM)
			var got []string
			if err := runnerconfig.Validate(&c); err != nil {
				for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
					var problem *runnerconfig.Error
					if !errors.As(e, &problem) {
						t.Fatalf("%T", e)
					}
					got = append(got, problem.Path)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems at %q, want %q", got, tt.want)
			}
		})
	}
}

func drive(t *rapid.T) runnerconfig.Drive {
	name := rapid.StringMatching(`[a-z]{1,30}`).Draw(t, "name")
	if rapid.Bool().Draw(t, "cd") {
		return runnerconfig.Drive{Type: "ide-cd", File: "/images/" + name}
	}
	d := runnerconfig.Drive{Type: "raw", File: "/disks/" + rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "folder") + "/" + name}
	if rapid.Bool().Draw(t, "named") {
		d.Name = name
	}
	return d
}

// What is added behind the others changes nothing of the others.
func TestAddingBehindChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm"}}}
		c.Runner.VM.Drives = rapid.SliceOfN(rapid.Custom(drive), 1, 6).Draw(t, "drives")
		c.Runner.VM.Network = make([]runnerconfig.Network, rapid.IntRange(1, 4).Draw(t, "networks"))
		runnerconfig.Default(&c)
		machine := func(c runnerconfig.Config) qemucmd.Machine {
			m, err := runnerconfig.Machine(&c, runnerconfig.Facts{
				UUID: "2d1f5ae0-5b1c-4f0e-8f9a-0123456789ab", DataDir: "/d", RuntimeDir: "/r",
				Drives: make([]runnerconfig.DriveFacts, len(c.Runner.VM.Drives)),
			})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		all := machine(c)
		fewer := c
		fewer.Runner.VM.Drives = c.Runner.VM.Drives[:len(c.Runner.VM.Drives)-1]
		fewer.Runner.VM.Network = c.Runner.VM.Network[:len(c.Runner.VM.Network)-1]
		some := machine(fewer)
		for _, pair := range [][2]any{
			{some.Disks, all.Disks[:len(some.Disks)]},
			{some.CDDrives, all.CDDrives[:len(some.CDDrives)]},
			{some.Networks, all.Networks[:len(some.Networks)]},
		} {
			if diff := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}
		serials := map[string]bool{}
		for _, d := range all.Disks {
			if d.Serial == "" || len(d.Serial) > 20 || serials[d.Serial] {
				t.Fatalf("serial numbers %v", all.Disks)
			}
			serials[d.Serial] = true
		}
	})
}

func TestDefaultIsIdempotent(t *testing.T) {
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm", Display: &runnerconfig.Display{SPICE: &runnerconfig.SPICE{}}}}}
	runnerconfig.Default(&c)
	again := c
	runnerconfig.Default(&again)
	if diff := cmp.Diff(c, again); diff != "" {
		t.Error(diff)
	}
}

func TestLongRuntimeDirectory(t *testing.T) {
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm"}}}
	runnerconfig.Default(&c)
	_, err := runnerconfig.Machine(&c, runnerconfig.Facts{RuntimeDir: "/" + strings.Repeat("x", 100)})
	if err == nil || !strings.Contains(err.Error(), "choose a shorter runtime directory") {
		t.Error(err)
	}
}

// All sizes that are wrong are named with their fields.
func TestParseNamesWrongSizes(t *testing.T) {
	_, _, err := runnerconfig.Parse([]byte(`"/Runner": {vm: {name: a, maximumRam: x MiB, currentRam: 1 parsec}}`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`/Runner.vm.maximumRam: "x MiB" is not a size`, `/Runner.vm.currentRam: "1 parsec" has the unknown unit`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in: %v", want, err)
		}
	}
}
