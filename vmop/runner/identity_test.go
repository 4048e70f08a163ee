package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// A machine keeps its type over an upgrade of QEMU; only the field moves it, and
// what it moved to is kept when the field is gone.
func TestMachineTypeIsKept(t *testing.T) {
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
