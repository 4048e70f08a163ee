package runnerconfig_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// What VM-Operator's runner reads from scalars of other types, and what is refused
// because it would be a guess.
func TestCoercion(t *testing.T) {
	for _, tt := range []struct{ in, want string }{ // want begins with ! for an error
		{`powerdownTimeout: "60"`, "60"}, {`powerdownTimeout: '+60'`, "60"}, {`powerdownTimeout: "060"`, "60"}, {`powerdownTimeout: " 60 "`, "60"},
		{"powerdownTimeout: 60.0", "60"}, {"powerdownTimeout: 6e1", "60"}, {"powerdownTimeout: 0x3c", "60"}, {"powerdownTimeout: 6_0", "60"}, {"powerdownTimeout: 074", "60"},
		{`powerdownTimeout: ""`, "null"}, {"powerdownTimeout: null", "null"},
		{"powerdownTimeout: 60.5", "!found 60.5, want a whole number"}, {`powerdownTimeout: "60.0"`, `!found the text "60.0", want a whole number`},
		{`powerdownTimeout: "0x3c"`, "!"}, {"powerdownTimeout: true", "!found true, want a whole number"}, {"powerdownTimeout: .inf", "!"}, {"powerdownTimeout: 9223372036854775808", "!"},
		{"powerdownTimeout: [60]", "!found a list, want a whole number"}, {"powerdownTimeout: {a: 1}", "!found a mapping, want a whole number"},
		{"useTpm: yes", "true"}, {"useTpm: Off", "false"}, {"useTpm: NO", "false"}, {"useTpm: TRUE", "true"}, {`useTpm: "true"`, "true"}, {"useTpm: 1", "true"}, {"useTpm: 0", "false"}, {`useTpm: ""`, "false"},
		{"useTpm: 2", "!found 2, want true or false"}, {`useTpm: "yes"`, `!found the text "yes", want true or false`}, {"useTpm: y", "!"}, {"useTpm: 1.0", "!"}, {"useTpm: oN", "!"},
		{"firmware: uefi", `"uefi"`}, {"cpuModel: 486", `"486"`}, {"cpuModel: 1.10", `"1.10"`}, {"cpuModel: true", `"true"`}, {"cpuModel: off", `"off"`}, {"rtcBase: 2026-06-17", `"2026-06-17"`},
		{"cpuModel: 010", "!found 010, want a text"}, {"cpuModel: 1e3", "!"}, {"cpuModel: True", "!"}, {"cpuModel: 0x10", "!"}, {"cpuModel: []", "!found a list, want a text"},
		{"maximumRam: 1073741824", `"1 GiB"`}, {"maximumRam: 1G", `"1 GB"`}, {`maximumRam: "4 GiB"`, `"4 GiB"`}, {`maximumRam: ""`, `"0"`}, {`maximumRam: "010"`, `"10"`},
		{"maximumRam: 010", "!"}, {"maximumRam: true", "!found true, want a size"}, {"maximumRam: 4 parsec", `!line 2: /Runner.vm.maximumRam: "4 parsec" has the unknown unit`},
	} {
		key, _, _ := strings.Cut(tt.in, ":")
		c, _, err := runnerconfig.Parse([]byte("/Runner:\n  vm: {name: a, " + tt.in + "}\n"))
		if want, refused := strings.CutPrefix(tt.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), "line 2: /Runner.vm."+key) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", tt.in, err)
			}
			continue
		}
		vm := c.Runner.VM
		got, _ := json.Marshal(map[string]any{"powerdownTimeout": vm.PowerdownTimeout, "useTpm": vm.UseTPM, "firmware": vm.Firmware,
			"cpuModel": vm.CPUModel, "rtcBase": vm.RTCBase, "maximumRam": vm.MaximumRAM})
		var fields map[string]json.RawMessage
		if err != nil || json.Unmarshal(got, &fields) != nil || string(fields[key]) != tt.want {
			t.Errorf("%s: %s, %v", tt.in, fields[key], err)
		}
	}
}

// All mistakes are told together, each with its line.
func TestMistakesOfTypesAreToldTogether(t *testing.T) {
	_, _, err := runnerconfig.Parse([]byte("_Runner:\n  cloudInit:\n    metaData: [a]\n  vm:\n    maximumCpus: many\n    drives:\n    - bootindex: first\n    display: on\n"))
	want := `runner configuration: line 3: /Runner.cloudInit.metaData: found a list, want a mapping
line 5: /Runner.vm.maximumCpus: found the text "many", want a whole number
line 7: /Runner.vm.drives[0].bootindex: found the text "first", want a whole number
line 8: /Runner.vm.display: found the text "on", want a mapping`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// Metadata may be any scalars, documents stay what they are, and what one anchor
// stands for depends on where it is used.
func TestCoercionOfDocuments(t *testing.T) {
	c, _, err := runnerconfig.Parse([]byte("_Runner:\n  cloudInit: {metaData: {instance-id: 5, a: &a 1, b: true}, userData: {a: \"1\", b: yes, c: 1.0}}\n  vm: {name: *a, maximumCpus: *a}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"instance-id": "5", "a": "1", "b": "true"}, c.Runner.CloudInit.MetaData); diff != "" {
		t.Error(diff)
	}
	if got := string(c.Runner.CloudInit.UserData); got != `{"a":"1","b":"yes","c":1.0}` || c.Runner.VM.Name != "1" || c.Runner.VM.MaximumCPUs != 1 {
		t.Errorf("%s, %+v", got, c.Runner.VM)
	}
}

// Metadata may have lists and mappings, and YAML's merge keys are resolved, as
// VM-Operator's runner has it.
func TestNestedMetaDataAndMergeKeys(t *testing.T) {
	c, warnings, err := runnerconfig.Parse([]byte(`
disk: &disk {type: raw, bootindex: "1"}
_Runner:
  cloudInit:
    metaData: {instance-id: 5, public-keys: [a, &b b], tags: {x: 010, y: 1.0, z: *b}}
    userData: &user {a: 1}
    networkConfig: {<<: *user, b: [{<<: *user}]}
  vm:
    <<: {name: other, maximumCpus: "2"}
    name: web
    drives:
    - {<<: *disk, resource: /dev/a}
    - {resource: /dev/b, bootindex: 2, <<: *disk}
`))
	if err != nil {
		t.Fatal(err)
	}
	i, vm := c.Runner.CloudInit, c.Runner.VM
	if got := fmt.Sprintf("%v %s", i.MetaData, i.MetaDataValues); got != `map[instance-id:5] map[public-keys:["a","b"] tags:{"x":8,"y":1.0,"z":"b"}]` {
		t.Errorf("metadata: %s", got)
	}
	if string(i.NetworkConfig) != `{"b":[{"a":1}],"a":1}` {
		t.Errorf("network configuration: %s", i.NetworkConfig)
	}
	if vm.Name != "web" || vm.MaximumCPUs != 2 || len(vm.Drives) != 2 || *vm.Drives[0].BootIndex != 1 || *vm.Drives[1].BootIndex != 2 || vm.Drives[1].Type != "raw" {
		t.Errorf("%+v", vm)
	}
	if diff := cmp.Diff([]string{"disk: unknown key, ignored"}, warnings); diff != "" {
		t.Error(diff)
	}
	written, err := runnerconfig.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := runnerconfig.Parse(written)
	if diff := cmp.Diff(c, again); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	_, _, err = runnerconfig.Parse([]byte("/Runner:\n  vm:\n    <<: 5\n"))
	if err == nil || !strings.Contains(err.Error(), "line 3: the key << takes a mapping or a list of mappings") {
		t.Errorf("%v", err)
	}
}

// A file that was written with quotes around each number and truth value is read as
// without them.
func TestQuotesMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(-4, 5000).Draw(t, "n")
		b := rapid.Bool().Draw(t, "b")
		text := "/Runner: {guestShutdownStops: %[2]s, vm: {name: a, bootMenu: %[2]s, maximumCpus: %[1]s, powerdownTimeout: %[1]s, drives: [{bootindex: %[1]s}], display: {outputs: %[1]s, spice: {port: %[1]s}}}}"
		number, word := strconv.Itoa(int(n)), strconv.FormatBool(b)
		want, _, err := runnerconfig.Parse(fmt.Appendf(nil, text, number, word))
		if err != nil {
			t.Fatal(err)
		}
		for _, quoted := range [][2]string{{strconv.Quote(number), strconv.Quote(word)}, {number + ".0", "'" + strings.ToUpper(word) + "'"}, {number + "e0", map[bool]string{true: "on", false: "off"}[b]}} {
			got, warnings, err := runnerconfig.Parse(fmt.Appendf(nil, text, quoted[0], quoted[1]))
			if diff := cmp.Diff(want, got); diff != "" || err != nil || len(warnings) > 0 {
				t.Fatalf("%v: %v, %v, %s", quoted, err, warnings, diff)
			}
		}
	})
}

// Each machine that cloud-init is told of has an instance-id that stays.
func TestSeedMetaData(t *testing.T) {
	for _, c := range []struct {
		meta map[string]string
		want string
	}{{nil, "u"}, {map[string]string{"instance-id": ""}, "u"}, {map[string]string{"instance-id": "v1"}, "v1"}, {map[string]string{"a": "b"}, "u"}} {
		in := &runnerconfig.CloudInit{MetaData: c.meta}
		got := in.SeedMetaData("u")
		if got["instance-id"] != c.want || got["a"] != c.meta["a"] {
			t.Errorf("%v: %v", c.meta, got)
		}
	}
}
