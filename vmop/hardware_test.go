package vmop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// hardware lists what a guest can tell a device by: its model, its place in the
// machine and whether others can stand beside it, and the ids by which QEMU's
// clients know it. A line that changes is other hardware for guests that exist.
func hardware(t *testing.T, cmd qemucmd.Command) string {
	t.Helper()
	var out strings.Builder
	for _, g := range cmd.Groups {
		for _, o := range g.Options {
			place := ""
			for _, p := range o.Props {
				switch p.Key {
				case "bus", "addr", "port", "nr", "index", "multifunction", "chassis", "slot":
					text, err := json.Marshal(p.Value)
					if err != nil {
						t.Fatal(err)
					}
					place += fmt.Sprintf(" %s=%s", p.Key, strings.Trim(string(text), `"`))
				}
			}
			switch {
			case o.Flag == "-device":
				fmt.Fprintf(&out, "%s %s%s\n", o.Head, o.ID, place)
			case o.ID != "":
				fmt.Fprintf(&out, "%s %s\n", strings.TrimPrefix(o.Flag, "-"), o.ID)
			}
		}
	}
	return out.String()
}

// TestHardwareOfExamples compares the devices of every example with what guests
// of such machines have had since their first start.
func TestHardwareOfExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		vms, err := vmop.Load(file, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, vm := range vms {
			name := filepath.Base(filepath.Dir(file)) + "-" + vm.Name
			for suffix, addresses := range map[string]int{"": 1, ".map2": 2} {
				out, err := vmop.Render(vm, vmop.RenderOptions{Template: qemucmd.Template("{{standard}}"), AddressMap: addresses})
				if err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("hardware", name+suffix+".txt"), hardware(t, out.Command))
			}
		}
	}
}

// TestHardwareOfVMOperatorsMachine is the machine whose guests are taken over.
func TestHardwareOfVMOperatorsMachine(t *testing.T) {
	data, err := os.ReadFile("qemucmd/testdata/golden/vm-operator.machine.json")
	if err != nil {
		t.Fatal(err)
	}
	var m qemucmd.Machine
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	cmd, err := qemucmd.Build(m, qemucmd.GenericHost())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "hardware/vm-operator.txt", hardware(t, cmd))
}

// TestHardwareOfLargestMachine has as many of everything as a machine can have.
func TestHardwareOfLargestMachine(t *testing.T) {
	golden(t, "hardware/largest.txt", hardware(t, buildLargest(t, 1, 14*8)))
	golden(t, "hardware/largest.map2.txt", hardware(t, buildLargest(t, 2, 12*8)))
}

func buildLargest(t *testing.T, addresses, disks int) qemucmd.Command {
	t.Helper()
	socket := func(name string) *qemucmd.Socket { return &qemucmd.Socket{Path: "/run/vm/" + name} }
	m := qemucmd.Machine{
		AddressMap: addresses, Name: "largest", UUID: "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
		CPU: qemucmd.CPU{Maximum: 288}, Memory: qemucmd.Memory{Size: 1 << 40},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareSecure4M, VarsPath: "/data/fw-vars.fd"},
		TPM:      &qemucmd.TPM{Socket: "/run/vm/tpm", StateDir: "/data"},
		Seed:     &qemucmd.Seed{File: "/run/vm/seed"},
		Outputs:  16,
		Serial:   socket("serial"), Monitor: *socket("monitor"), ToolMonitor: socket("tools"),
		GuestAgent: socket("qga"), VMOPAgent: socket("vmop"),
		Display: &qemucmd.Display{
			SPICE: &qemucmd.SPICE{Socket: "/run/vm/spice", USBRedirects: 14},
			VNC:   &qemucmd.VNC{Socket: "/run/vm/vnc", Password: true},
		},
	}
	for i := range 6 {
		m.CDDrives = append(m.CDDrives, qemucmd.CDDrive{Image: fmt.Sprint("/images/cd", i)})
	}
	for i := range disks {
		m.Disks = append(m.Disks, qemucmd.Disk{File: fmt.Sprint("/images/disk", i)})
	}
	for i := range 9 * 8 {
		m.Networks = append(m.Networks, qemucmd.Network{MAC: qemucmd.StableMAC("x", i), User: &qemucmd.UserNetwork{}})
	}
	cmd, err := qemucmd.Build(m, qemucmd.GenericHost())
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}
