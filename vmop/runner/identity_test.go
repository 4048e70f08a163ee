package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A machine keeps its type over an upgrade of QEMU; only the field moves it, and
// what it moved to is kept when the field is gone.
func TestMachineTypeIsKept(t *testing.T) {
	t.Parallel()
	newer := func(h *qemucmd.Host) {
		h.Version = qemucmd.Version{Major: 10, Minor: 1}
		for i := range h.MachineTypes {
			h.MachineTypes[i].Alias = ""
		}
		h.MachineTypes = append(h.MachineTypes, qemucmd.MachineType{Name: "pc-q35-10.1", Alias: "q35"})
	}
	gone := func(h *qemucmd.Host) {
		newer(h)
		h.MachineTypes = h.MachineTypes[3:] // 7.2 and 7.1
	}
	deprecated := func(h *qemucmd.Host) {
		for i := range h.MachineTypes {
			h.MachineTypes[i].Deprecated = true
		}
	}
	d := testDirs(t)
	for _, tt := range []struct {
		name, field string
		host        func(*qemucmd.Host)
		want        string // type, or part of an error
		said        string
	}{
		{"the first start", "", func(*qemucmd.Host) {}, "pc-q35-7.2", ""},
		{"a newer QEMU", "", newer, "pc-q35-7.2", ""},
		{"a newer QEMU, whose newest is named", "q35", newer, "pc-q35-7.2", ""},
		{"a QEMU that will drop it", "", deprecated, "pc-q35-7.2", "is deprecated"},
		{"a QEMU that has dropped it", "", gone, "error: recordedType: the machine has the type \"pc-q35-7.2\" since an earlier start", ""},
		{"a type that does not exist", "pc-q35-1.0", newer, "error: type: QEMU does not offer", ""},
		{"the field moves it", "pc-q35-7.0", newer, "pc-q35-7.0", "changes from pc-q35-7.2 to pc-q35-7.0"},
		{"the field is gone", "", newer, "pc-q35-7.0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig(t)
			c.Runner.VM.MachineType = tt.field
			r := start(t, c, d, func(o *Options) {
				tt.host(&o.Host)
			})
			if want, refused := strings.CutPrefix(tt.want, "error: "); refused {
				if o, err := r.wait(t); err == nil || o.Cause != CauseStartFailure || !strings.Contains(o.Message, want) {
					t.Errorf("outcome %+v, %v", o, err)
				}
				return
			}
			s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
			r.cancel()
			r.wait(t)
			rec, err := readRecord(d.Data)
			if err != nil || s.MachineType != tt.want || rec.MachineType != tt.want {
				t.Errorf("type %s, recorded %s, %v; want %s", s.MachineType, rec.MachineType, err, tt.want)
			}
			if tt.said != "" && !r.log.said(tt.said) {
				t.Errorf("messages %q, want %q", r.log.messages, tt.said)
			}
		})
	}
}

// A machine of VM-Operator keeps its UUID and, where QEMU has it, its type.
func TestTakenOverIdentity(t *testing.T) {
	t.Parallel()
	const uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, tt := range []struct{ template, want string }{
		{"qemu:\n  arguments:\n  - [ \"-machine\", \"pc-q35-7.0,usb=off\" ]\n", "pc-q35-7.0"},
		{"- pc-q35-9.2,usb=off\n", "pc-q35-7.2"}, // not offered
		{"- q35\n", "pc-q35-7.2"},
		{"# pc-q35-7.0 or pc-q35-7.1\n", "pc-q35-7.2"}, // not known
	} {
		d := testDirs(t)
		if err := os.MkdirAll(d.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"VM.ftl.yaml": tt.template, "uuid.txt": uuid + "\n"} {
			if err := os.WriteFile(filepath.Join(d.Data, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, testConfig(t), d)
		s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
		r.cancel()
		r.wait(t)
		if s.MachineType != tt.want || s.UUID != uuid {
			t.Errorf("%q: type %s, UUID %s; want %s", tt.template, s.MachineType, s.UUID, tt.want)
		}
	}
}

// What a record lacks, or has as null, is as at the first start.
func TestRecordOfAnyShape(t *testing.T) {
	for text, ok := range map[string]bool{
		`{}`: true, `{"firmware":null,"disks":null}`: true, `null`: true, ``: false, `{"firmware":3}`: false, `{`: false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, recordName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecord(dir)
		if (err == nil) != ok || err == nil && (r.Firmware == nil || r.Disks == nil) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

// sight is what a guest sees of its machine.
func sight(t *testing.T, c *tinyguest.Console) map[string]string {
	t.Helper()
	seen := map[string]string{
		"uuid": command(t, c, "uuid"),
		"type": command(t, c, "cat /sys/class/dmi/id/product_version"),
	}
	for _, list := range []string{"disks", "mac"} {
		for line := range strings.Lines(command(t, c, list)) {
			name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != "sr0" {
				seen[list+" "+name] = what
			}
		}
	}
	for _, device := range []string{"block/vda", "block/vdb", "net/eth0", "net/eth1"} {
		out, err := c.Command(withPatience(t), "cat /sys/class/"+device+"/device/../uevent")
		if err != nil {
			continue // there is none
		}
		for line := range strings.Lines(out) {
			if slot, found := strings.CutPrefix(line, "PCI_SLOT_NAME="); found {
				seen["address "+device] = strings.TrimSpace(slot)
			}
		}
	}
	return seen
}

// tpmCommand is a command with the owner's empty password.
func tpmCommand(code uint32, handles []uint32, parameters string) string {
	var h strings.Builder
	for _, handle := range handles {
		fmt.Fprintf(&h, "%08x", handle)
	}
	body := fmt.Sprintf("%08x%s00000009%08x0000010000%s", code, h.String(), 0x40000009, parameters)
	return fmt.Sprintf("8002%08x%s", 6+len(body)/2, body)
}

const (
	tpmOwner = 0x40000001
	tpmIndex = 0x01500001
	// tpmText is what the test keeps in the TPM.
	tpmText = "6b657074"
)

// tpmAsk fails unless the TPM does what it is asked to.
func tpmAsk(t *testing.T, c *tinyguest.Console, request string) string {
	t.Helper()
	answer := command(t, c, "ask /dev/tpm0 "+request)
	if len(answer) < 20 || answer[12:20] != "00000000" {
		t.Fatalf("the TPM answers %s to %s", answer, request)
	}
	return answer
}

// A guest finds the machine that it left, with what it kept in the firmware's
// variables and in the TPM: after a stop, with devices added behind the others, in a
// copy of the data directory, all at once. It is a machine as Windows 11 wants it.
func TestGuestFindsItsMachineAgain(t *testing.T) {
	t.Parallel() // with others that boot for long
	const variable = "/sys/firmware/efi/efivars/VmopTest-6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	d := testDirs(t)
	machine := func(d Directories) runnerconfig.Config {
		c := testConfig(t)
		vm := &c.Runner.VM
		vm.Firmware, vm.UseTPM, vm.MaximumRAM = "secure-4m", true, 256<<20
		vm.KernelBoot.Kernel = testGuest(t).BzImage
		vm.Drives = []runnerconfig.Drive{{Type: "raw", Name: "system", File: filepath.Join(d.Data, "system.img"), Size: 4 << 20}}
		vm.Network = []runnerconfig.Network{{Type: runnerconfig.NetworkUser}}
		return c
	}
	r := start(t, machine(d), d)
	console := r.console(t)
	if got := command(t, console, "efi"); got != "efi, secure boot on" {
		t.Errorf("efi: %s", got)
	}
	first := sight(t, console)
	for _, property := range []string{"uuid", "disks vda", "mac eth0", "address block/vda", "address net/eth0"} {
		if first[property] == "" {
			t.Errorf("the guest does not see its %s: %v", property, first)
		}
	}
	command(t, console, "store "+variable+" 07000000"+"76616c7565")
	// NV_DefineSpace with an index of four bytes that the owner reads and writes; NV_Write.
	tpmAsk(t, console, tpmCommand(0x12a, []uint32{tpmOwner}, fmt.Sprintf("0000"+"000e%08x000b0202000200000004", tpmIndex)))
	tpmAsk(t, console, tpmCommand(0x137, []uint32{tpmOwner, tpmIndex}, "0004"+tpmText+"0000"))
	r.Stop()
	r.wait(t)
	nothingLeft(t, d)

	for _, name := range []string{"fw-vars.fd", "tpm2-00.permall", "machine.json", "uuid.txt"} {
		if info, err := os.Stat(filepath.Join(d.Data, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	d = copyOf(t, d)
	c := machine(d)
	vm := &c.Runner.VM
	cd := filepath.Join(filepath.Dir(d.Data), "cd.iso")
	put(t, cd, string(make([]byte, 1<<20)))
	vm.Drives = append(vm.Drives,
		runnerconfig.Drive{Type: runnerconfig.DriveCD, File: cd},
		runnerconfig.Drive{Type: "raw", Name: "more", File: filepath.Join(d.Data, "more.img"), Size: 4 << 20})
	vm.Network = append(vm.Network, runnerconfig.Network{Type: runnerconfig.NetworkUser})
	r = start(t, c, d)
	console = r.console(t)
	now := sight(t, console)
	for property, before := range first {
		if now[property] != before {
			t.Errorf("%s was %q and is %q", property, before, now[property])
		}
	}
	if now["disks vdb"] == "" || now["mac eth1"] == "" || len(now) != len(first)+4 {
		t.Errorf("the guest sees %v", now)
	}
	command(t, console, "efi") // mounts the variables
	if got := command(t, console, "hex "+variable); got != "0700000076616c7565" {
		t.Errorf("the variable: %s", got)
	}
	if got := tpmAsk(t, console, tpmCommand(0x14e, []uint32{tpmOwner, tpmIndex}, "00040000")); !strings.Contains(got, "0004"+tpmText) {
		t.Errorf("the TPM's memory: %s", got)
	}
	r.Stop()
	r.wait(t)
	nothingLeft(t, d)
}

// copyOf copies the data directory of a machine that has ended.
func copyOf(t *testing.T, d Directories) Directories {
	t.Helper()
	copied := testDirs(t)
	if err := os.CopyFS(copied.Data, os.DirFS(d.Data)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// A UUID that is given stays the machine's when it is not given any more.
func TestUUIDIsKept(t *testing.T) {
	const given = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	d := testDirs(t)
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	keep := func(desired string) (string, bool, error) {
		log := &recorder{t: t}
		e, err := New(Options{Config: testConfig(t), Host: testHost(t), Directories: d, Reporter: log})
		if err != nil {
			t.Fatal(err)
		}
		uuid, err := e.keepUUID(desired)
		return uuid, log.said("the UUID changes from"), err
	}
	first, told, err := keep("")
	if err != nil || told || len(first) != 36 {
		t.Fatalf("%q, %t, %v", first, told, err)
	}
	for _, step := range []struct {
		desired, want string
		told          bool
	}{
		{"", first, false}, {strings.ToUpper(first), first, false}, {given, given, true}, {given, given, false}, {"", given, false},
	} {
		if got, told, err := keep(step.desired); err != nil || got != step.want || told != step.told {
			t.Errorf("%q: %q, told %t, %v; want %q", step.desired, got, told, err, step.want)
		}
	}
	if err := os.WriteFile(filepath.Join(d.Data, uuidName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keep(""); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty file: %v", err)
	}
	if got, _, err := keep(given); err != nil || got != given {
		t.Errorf("an empty file, and a UUID that is given: %q, %v", got, err)
	}
}

// A machine keeps the addresses of its first start; one that ran before there was
// a choice has the original ones.
func TestAddressMapIsKept(t *testing.T) {
	for _, c := range []struct {
		name, record string
		want         int
	}{
		{"new", "", qemucmd.NewestAddressMap},
		{"prepared, and never started", `{"disks":{}}`, qemucmd.NewestAddressMap},
		{"of an earlier version", `{"machineType":"pc-q35-7.2"}`, 1},
		{"recorded", `{"machineType":"pc-q35-7.2","addressMap":2}`, 2},
		{"recorded as original", `{"machineType":"pc-q35-7.2","addressMap":1}`, 1},
		{"of a later version", `{"machineType":"pc-q35-7.2","addressMap":9}`, 9}, // which QEMU is not started with
	} {
		dir := t.TempDir()
		if c.record != "" {
			if err := os.WriteFile(filepath.Join(dir, recordName), []byte(c.record), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			r, err := readRecord(dir)
			if err != nil {
				t.Fatal(err)
			}
			r.chooseAddressMap(&runnerconfig.VM{Drives: []runnerconfig.Drive{{Type: runnerconfig.DriveRaw}}})
			if r.AddressMap != c.want {
				t.Errorf("%s: %d, want %d", c.name, r.AddressMap, c.want)
			}
			r.MachineType = "pc-q35-7.2"
			if err := r.write(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A machine that VM-Operator made keeps the slots of its disks, whatever network
// cards it gets later; one that runs already stays as it is.
func TestDiskSlotsOfVMOperatorsMachinesAreKept(t *testing.T) {
	vm := runnerconfig.VM{BootOrder: runnerconfig.BootOrderFirmware, Network: make([]runnerconfig.Network, 2), Drives: make([]runnerconfig.Drive, 3)}
	for _, c := range []struct {
		record record
		order  string
		want   int
	}{
		{record{}, runnerconfig.BootOrderFirmware, 9},
		{record{}, runnerconfig.BootOrderList, 0},
		{record{AddressMap: 2, MachineType: "pc-q35-7.2"}, runnerconfig.BootOrderFirmware, 0},
		{record{AddressMap: 2, FirstDiskSlot: 8}, runnerconfig.BootOrderFirmware, 8},
	} {
		vm.BootOrder = c.order
		c.record.chooseAddressMap(&vm)
		more := vm
		more.Network = make([]runnerconfig.Network, 5)
		c.record.chooseAddressMap(&more)
		if c.record.FirstDiskSlot != c.want {
			t.Errorf("%+v with %s", c.record, c.order)
		}
	}
	if n := qemucmd.DiskSlotFor(4, 30); n != 0 {
		t.Errorf("more disks than slots: %d", n)
	}
}
