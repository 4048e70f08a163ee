package hostprobe

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// qemu returns the path of the distribution's QEMU.
func qemu(t *testing.T) string {
	t.Helper()
	p, err := findQEMU("")
	if err != nil {
		t.Fatalf("%v; run: make deps", err)
	}
	return p
}

func TestProbeFindsWhatTheStandardMachineNeeds(t *testing.T) {
	r, err := Probe(t.Context(), Options{QEMU: qemu(t)})
	if err != nil {
		t.Fatal(err)
	}
	h := r.Host
	t.Logf("notes: %q", r.Notes)
	if h.Version.Major < 7 {
		t.Errorf("version %v", h.Version)
	}
	for _, d := range []string{"virtio-vga", "usb-redir", "virtio-net-pci", "tpm-tis", "isa-serial", "virtserialport"} {
		if !slices.Contains(h.Devices, d) {
			t.Errorf("no device %s; run: make deps", d)
		}
	}
	if !slices.IsSorted(h.Devices) || !slices.IsSorted(h.BlockDrivers) {
		t.Error("not sorted")
	}
	for _, d := range []string{"file", "host_device", "raw", "qcow2"} {
		if !slices.Contains(h.BlockDrivers, d) {
			t.Errorf("no block driver %s", d)
		}
	}
	if !h.SPICE || !h.JSONDevice {
		t.Errorf("SPICE %v, JSON devices %v", h.SPICE, h.JSONDevice)
	}
	q35 := slices.IndexFunc(h.MachineTypes, func(m qemucmd.MachineType) bool { return m.Alias == "q35" })
	if q35 < 0 || h.MachineTypes[q35].MaxCPUs < 255 || !strings.HasPrefix(h.MachineTypes[q35].Name, "pc-q35-") {
		t.Errorf("machine types %v", h.MachineTypes)
	}
	for _, kind := range []qemucmd.FirmwareKind{"bios", "uefi", "uefi-4m", "secure", "secure-4m"} {
		m := qemucmd.Machine{
			Name: "m", UUID: "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01", Memory: qemucmd.Memory{Size: 1 << 30},
			Firmware: qemucmd.Firmware{Kind: kind, VarsPath: "/vars"}, Monitor: qemucmd.Socket{Path: "/monitor"},
			TPM: &qemucmd.TPM{Socket: "/tpm", StateDir: "/tpm.state"}, Disks: []qemucmd.Disk{{File: "/d"}},
		}
		if _, err := qemucmd.Build(m, h); err != nil {
			t.Errorf("%s: %v; run: make deps", kind, err)
		}
	}
	if h.KVM != !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "KVM: ") }) {
		t.Errorf("KVM %v, notes %q", h.KVM, r.Notes)
	}
}

// TestCacheAnswersTheSame compares the answers with and without a cache, and
// checks that a cache that is used does not ask QEMU again.
func TestCacheAnswersTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "cache")
	o := Options{QEMU: qemu(t), CacheDir: dir}
	first := probe(t, o)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	file := filepath.Join(dir, files[0].Name())
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if diff := cmp.Diff(first, probe(t, o)); diff != "" {
		t.Errorf("from the cache:\n%s", diff)
	}
	again, err := os.Stat(file)
	if err != nil || !os.SameFile(info, again) {
		t.Error("the cache was written again")
	}

	// What the cache says is believed, so that QEMU cannot have been asked.
	change(t, file, func(e *entry) { e.Host.Version.Micro = 4711 })
	if got := probe(t, o).Host.Version.Micro; got != 4711 {
		t.Errorf("QEMU was asked: micro version %d", got)
	}
	for name, spoil := range map[string]func(){
		"another binary":        func() { change(t, file, func(e *entry) { e.Identity.Binary.Inode++ }) },
		"other modules":         func() { change(t, file, func(e *entry) { e.Identity.Modules = nil }) },
		"another format":        func() { change(t, file, func(e *entry) { e.Format++ }) },
		"no machine types":      func() { change(t, file, func(e *entry) { e.Host.MachineTypes = nil }) },
		"not JSON":              func() { write(t, file, "{") },
		"JSON of another shape": func() { write(t, file, `{"host":[]}`) },
		"empty":                 func() { write(t, file, "") },
	} {
		change(t, file, func(e *entry) { e.Host.Version.Micro = 4711 })
		spoil()
		if diff := cmp.Diff(first, probe(t, o)); diff != "" {
			t.Errorf("%s: not asked again:\n%s", name, diff)
		}
	}
}

func TestCacheThatCannotBeWrittenIsNoError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	r := probe(t, Options{QEMU: qemu(t), CacheDir: file})
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "cache: ") }) {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestNoQEMUSaysHowToInstallIt(t *testing.T) {
	_, err := Probe(t.Context(), Options{QEMU: filepath.Join(t.TempDir(), "qemu")})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "apt install") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if p, err := findQEMU(""); err == nil && !filepath.IsAbs(p) {
		t.Errorf("found %s", p)
	}
}

func TestWhatIsNotQEMU(t *testing.T) {
	for name, script := range map[string]string{
		"ends":              "echo broken >&2; exit 1",
		"ends successfully": "exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "qemu")
			write(t, file, "#!/bin/sh\n"+script+"\n")
			if err := os.Chmod(file, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := Probe(t.Context(), Options{QEMU: file})
			if err == nil || !strings.Contains(err.Error(), file) {
				t.Fatalf("%v", err)
			}
			if strings.Contains(script, "broken") && !strings.Contains(err.Error(), "broken") {
				t.Errorf("%v does not say what it wrote", err)
			}
		})
	}
}

func TestCancelledProbeEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "qemu")
	write(t, file, "#!/bin/sh\nexec sleep 1000\n")
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Probe(ctx, Options{QEMU: file}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestProofGuestSpeaks runs the throwaway guest of the KVM check where every
// host can: under software emulation.
func TestProofGuestSpeaks(t *testing.T) {
	if err := runGuest(t.Context(), qemu(t), time.Minute, "-accel", "tcg,tb-size=32"); err != nil {
		t.Error(err)
	}
}

// TestSilentGuestIsNoProof stops the guest before its first instruction.
func TestSilentGuestIsNoProof(t *testing.T) {
	err := runGuest(t.Context(), qemu(t), 3*time.Second, "-accel", "tcg,tb-size=32", "-S")
	if err == nil || !strings.Contains(err.Error(), "executed nothing") {
		t.Errorf("%v", err)
	}
	err = runGuest(t.Context(), qemu(t), time.Minute, "-accel", "none-such")
	if err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Errorf("%v", err)
	}
}

func TestVirtualizes(t *testing.T) {
	for cpuinfo, want := range map[string]bool{
		"processor\t: 0\nflags\t\t: fpu vmx de\n":           true,
		"flags\t\t: fpu svm\n":                              true,
		"flags\t\t: fpu svm_lock vmxnet\nbugs\t: vmx\n":     false,
		"vmx flags\t: vnmi\nflags\t\t: fpu\nflags\t: vmx\n": false,
		"": false,
	} {
		if got := virtualizes(cpuinfo); got != want {
			t.Errorf("%q: %v", cpuinfo, got)
		}
	}
}

func probe(t *testing.T, o Options) Result {
	t.Helper()
	r, err := Probe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func change(t *testing.T, file string, f func(*entry)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	f(&e)
	if data, err = json.Marshal(e); err != nil {
		t.Fatal(err)
	}
	write(t, file, string(data))
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSeenGuestIsRememberedUntilTheHostBoots has no need of KVM.
func TestSeenGuestIsRememberedUntilTheHostBoots(t *testing.T) {
	dir := t.TempDir()
	id, err := identify(qemu(t))
	if err != nil {
		t.Fatal(err)
	}
	h := qemucmd.Host{MachineTypes: []qemucmd.MachineType{{Name: "pc-q35-7.2"}}}
	for _, works := range []bool{false, true, false} {
		if err := openCache(dir, id).store(h, KVM{Works: works}); err != nil {
			t.Fatal(err)
		}
		c := openCache(dir, id)
		if c.kvmSeen() != works {
			t.Errorf("seen %v, remembered %v", works, c.kvmSeen())
		}
		c.boot = "another"
		if c.kvmSeen() {
			t.Error("remembered after a boot")
		}
	}
}
