package qmp_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/internal/qemutest"
)

// commands are all command types of the package.
var commands = []any{
	qmp.AddFD{}, qmp.QueryFDSets{}, qmp.Balloon{}, qmp.BlockResize{}, qmp.BlockCommit{}, qmp.JobCancel{}, qmp.JobComplete{}, qmp.JobDismiss{}, qmp.JobFinalize{}, qmp.Transaction{}, qmp.QueryJobs{}, qmp.BlockdevAdd{Driver: "d", NodeName: "n"},
	qmp.BlockdevChangeMedium{}, qmp.BlockdevCloseTray{}, qmp.BlockdevDel{}, qmp.BlockdevInsertMedium{},
	qmp.BlockdevOpenTray{}, qmp.BlockdevRemoveMedium{}, qmp.CloseFD{}, qmp.Cont{},
	qmp.DeviceAdd{Driver: "d", ID: "i", Bus: "b"}, qmp.DeviceDel{}, qmp.DeviceListProperties{},
	qmp.ExpirePassword{}, qmp.GetFD{}, qmp.InjectNMI{}, qmp.NetdevAdd{Type: "t", ID: "i"}, qmp.NetdevDel{},
	qmp.ObjectAdd{QOMType: "q", ID: "i"}, qmp.ObjectDel{}, qmp.QOMGet{}, qmp.QOMList{}, qmp.QOMListTypes{}, qmp.QOMSet{},
	qmp.QueryBalloon{}, qmp.QueryBlock{}, qmp.QueryBlockStats{}, qmp.QueryCPUDefinitions{}, qmp.QueryCPUsFast{},
	qmp.QueryChardev{}, qmp.QueryCommands{}, qmp.QueryCurrentMachine{}, qmp.QueryHotpluggableCPUs{}, qmp.QueryJIT{},
	qmp.QueryIOThreads{}, qmp.QueryKVM{}, qmp.QueryMachines{}, qmp.QueryMemoryDevices{}, qmp.QueryMemorySizeSummary{},
	qmp.QueryName{}, qmp.QueryNamedBlockNodes{}, qmp.QueryPCI{}, qmp.QueryQMPSchema{}, qmp.QuerySpice{}, qmp.QueryStatus{},
	qmp.QueryTPM{}, qmp.QueryTarget{}, qmp.QueryUUID{}, qmp.QueryVNC{}, qmp.QueryVNCServers{}, qmp.QueryVersion{},
	qmp.QueryYank{}, qmp.Quit{}, qmp.RemoveFD{}, qmp.Screendump{}, qmp.SendKey{}, qmp.SetAction{}, qmp.SetPassword{}, qmp.Stop{},
	qmp.SystemPowerdown{}, qmp.SystemReset{}, qmp.SystemWakeup{}, qmp.Yank{},
}

// events are all event payloads of the package.
var events = []qmp.EventData{
	qmp.ACPIDeviceOSTEvent{}, qmp.BalloonChangeEvent{}, qmp.NICRxFilterChangedEvent{}, qmp.RTCChangeEvent{}, qmp.BlockIOErrorEvent{}, qmp.DeviceDeletedEvent{},
	qmp.DeviceTrayMovedEvent{}, qmp.JobStatusChangeEvent{}, qmp.DeviceUnplugGuestErrorEvent{}, qmp.GuestPanickedEvent{}, qmp.GuestCrashLoadedEvent{}, qmp.MemUnplugErrorEvent{},
	qmp.MemoryDeviceSizeChangeEvent{}, qmp.PowerdownEvent{}, qmp.ResetEvent{}, qmp.ResumeEvent{}, qmp.ShutdownEvent{},
	qmp.SpiceConnectedEvent{}, qmp.SpiceDisconnectedEvent{}, qmp.SpiceInitializedEvent{}, qmp.StopEvent{},
	qmp.SuspendEvent{}, qmp.VNCConnectedEvent{}, qmp.VNCDisconnectedEvent{}, qmp.VNCInitializedEvent{},
	qmp.VSerPortChangeEvent{}, qmp.WakeupEvent{}, qmp.WatchdogEvent{},
}

// The lists above are complete: each type in the sources with the method is in
// one of them.
func TestAllTypesAreChecked(t *testing.T) {
	var want, got []string
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && (f.Name.Name == "QMP" || f.Name.Name == "QMPEvent") {
				want = append(want, f.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	for _, c := range commands {
		got = append(got, reflect.TypeOf(c).Name())
	}
	for _, e := range events {
		got = append(got, reflect.TypeOf(e).Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types in the sources and in the lists differ (-sources +lists):\n%s", diff)
	}
}

// Each JSON tag exists in the schema of a real QEMU: a misspelled one would
// silently stay zero.
func TestTagsAreInTheSchema(t *testing.T) {
	schema := realSchema(t)
	for _, c := range commands {
		results := reflect.ValueOf(c).MethodByName("QMP").Call(nil)
		name := results[0].String()
		if !schema.HasCommand(name) {
			t.Errorf("QEMU has no command %s", name)
			continue
		}
		checkArguments(t, schema, name, c)
		checkTags(t, results[1].Type(), nil, func(path []string) bool { return schema.Returns(name, path...) }, name+" returns")
	}
	gone := []string{"MEM_UNPLUG_ERROR"} // since QEMU 9.1
	for _, e := range events {
		if !schema.HasEvent(e.QMPEvent()) && slices.Contains(gone, e.QMPEvent()) && schema.HasEvent("DEVICE_UNPLUG_GUEST_ERROR") {
			continue
		}
		if !schema.HasEvent(e.QMPEvent()) {
			t.Errorf("QEMU has no event %s", e.QMPEvent())
			continue
		}
		checkTags(t, reflect.TypeOf(e), nil, func(path []string) bool { return schema.Accepts(e.QMPEvent(), path...) }, e.QMPEvent())
	}
}

// checkArguments also checks that a zero value has all that is required.
func checkArguments(t *testing.T, schema *qmp.Schema, name string, command any) {
	t.Helper()
	encoded, err := json.Marshal(command)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var present map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &present); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for member := range present {
		if !schema.Accepts(name, member) {
			t.Errorf("%s has no argument %s", name, member)
		}
	}
	for _, member := range schema.Entity(schema.Entity(name).ArgType).Members {
		if _, ok := present[member.Name]; !ok && !member.Optional {
			t.Errorf("%s lacks the argument %s", name, member.Name)
		}
	}
	if _, free := command.(json.Marshaler); !free {
		checkTags(t, reflect.TypeOf(command), nil, func(path []string) bool { return schema.Accepts(name, path...) }, name)
	}
}

// checkTags calls known for the path of each tag within t.
func checkTags(t *testing.T, typ reflect.Type, path []string, known func([]string) bool, where string) {
	t.Helper()
	const deepest = 8 // types such as PCIDevice contain themselves
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		checkTags(t, typ.Elem(), path, known, where)
	case reflect.Struct:
		if typ == reflect.TypeFor[qmp.SchemaEntity]() || len(path) == deepest {
			return // the schema tells little about itself; used by all these tests
		}
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				t.Errorf("%s: field %s has no tag", where, field.Name)
				continue
			}
			below := append(slices.Clone(path), name)
			if !known(below) {
				t.Errorf("%s: no member %s", where, strings.Join(below, "."))
				continue
			}
			checkTags(t, field.Type, below, known, where)
		}
	}
}

func TestSchemaLookup(t *testing.T) {
	schema := realSchema(t)
	for _, tc := range []struct {
		want bool
		name string
		path []string
	}{
		{true, "screendump", []string{"format", "png"}},
		{false, "screendump", []string{"format", "gif"}},
		{false, "screendump", []string{"format", "png", "x"}},
		{true, "blockdev-add", []string{"driver", "qcow2"}},
		{true, "blockdev-add", []string{"file", "aio", "threads"}}, // variant, alternate, variant
		{true, "ACPI_DEVICE_OST", []string{"info", "slot-type", "CPU"}},
		{true, "stop", nil},
		{false, "stop", []string{"x"}},
		{false, "no-such-command", nil},
	} {
		if got := schema.Accepts(tc.name, tc.path...); got != tc.want {
			t.Errorf("Accepts(%q, %q) is %t", tc.name, tc.path, got)
		}
	}
	if !schema.Entity("query-yank").AllowOOB || schema.Entity("stop").AllowOOB {
		t.Error("wrong commands are allowed out of band")
	}
	if len(schema.Commands()) < 200 || len(schema.Events()) < 50 {
		t.Errorf("%d commands, %d events", len(schema.Commands()), len(schema.Events()))
	}
}

func realSchema(t *testing.T) *qmp.Schema {
	t.Helper()
	ctx, c := real(t, qmp.Options{}, "-machine", "none")
	schema, err := c.Schema(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// real returns a client of a real QEMU.
func real(t *testing.T, o qmp.Options, args ...string) (context.Context, *qmp.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	m := qemutest.Start(t, 1, args...)
	c, err := qmp.Dial(ctx, m.Sockets[0], o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return ctx, c
}
