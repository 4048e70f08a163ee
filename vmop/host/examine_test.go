package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/asnobody"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Whatever a host has: each subject is judged once, what is not in order says what
// helps, and only what keeps all machines from starting is broken.
func TestDiagnose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maybe := func(what, value string) string {
			if rapid.Bool().Draw(t, what) {
				return value
			}
			return ""
		}
		s := surroundings{
			dataDir: "/data", data: maybe("no data directory", "/: read-only file system"),
			runtimeDir: "/run/vmop", runtime: maybe("no runtime directory", "/run: permission denied"),
			tooLong: maybe("long runtime directory", "/run/long has 100 bytes"),
			free:    rapid.Uint64().Draw(t, "free"), memory: rapid.Uint64().Draw(t, "memory"),
			mayBridge: rapid.Bool().Draw(t, "may bridge"),
			images: examinedImages{
				unknown: maybe("no list", "/data/machines: not a directory"), problem: maybe("broken cache", "x.json: unexpected end of JSON input"), cached: rapid.IntRange(0, 3).Draw(t, "cached"),
				left:     rapid.SampledFrom([][]string{nil, {"/data/machines/lab/.clone-a-1"}}).Draw(t, "left"),
				unmerged: rapid.SampledFrom([][]string{nil, {"lab/web"}, {"lab/db", "lab/web"}}).Draw(t, "unmerged"),
				stale:    Pruned{Freed: rapid.Int64Range(0, 1).Draw(t, "stale")},
				unused:   Pruned{Freed: rapid.Int64Range(0, 1).Draw(t, "unused"), Partial: rapid.IntRange(0, 1).Draw(t, "partial")},
			},
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "machines") {
			m := examinedMachine{name: fmt.Sprintf("lab/m%d", i), disks: i}
			if rapid.Bool().Draw(t, "problem") {
				m.problems = []imageProblem{{"its image is gone", "put it back"}}
			}
			s.images.machines = append(s.images.machines, m)
			s.images.storages = append(s.images.storages, storage{dir: fmt.Sprintf("/d%d", i), grows: rapid.Int64Range(0, 1<<40).Draw(t, "grows"), free: rapid.Int64Range(0, 1<<40).Draw(t, "room")})
		}
		if rapid.Bool().Draw(t, "bridge") {
			s.bridges = []string{"br0"}
		}
		if rapid.Bool().Draw(t, "no QEMU") {
			s.probeErr = &hostprobe.NotFoundError{Searched: []string{"PATH"}}
		} else {
			s.probed.Host = qemucmd.Host{
				QEMU: "/usr/bin/qemu-system-x86_64", KVM: rapid.Bool().Draw(t, "KVM"),
				SWTPM: maybe("swtpm", "/usr/bin/swtpm"), BridgeHelper: maybe("helper", "/usr/lib/qemu/qemu-bridge-helper"),
				SPICE: rapid.Bool().Draw(t, "SPICE"), VNC: rapid.Bool().Draw(t, "VNC"),
				Firmware: rapid.SampledFrom([][]qemucmd.FirmwareImage{nil, {{}}, {{Secure: true}}}).Draw(t, "firmware"),
			}
			if !s.probed.Host.KVM {
				s.probed.Notes = []string{"KVM: there is no /dev/kvm"}
			}
		}
		seen := map[string]bool{}
		broken := false
		for _, f := range diagnose(&s) {
			if seen[f.Subject] {
				t.Errorf("%s: twice", f.Subject)
			}
			seen[f.Subject] = true
			// What takes room can be removed, though nothing is wrong with it.
			if (f.Status == FindingOK) != (f.Do == "") && !(f.Status == FindingOK && slices.Contains([]string{"image cache", "interrupted copies", "unfinished copies"}, f.Subject)) {
				t.Errorf("%+v: what is in order needs nothing, and all else something", f)
			}
			if f.Found == "" || strings.Contains(f.Found, "%!") {
				t.Errorf("%+v", f)
			}
			broken = broken || f.Status == FindingBroken
		}
		if want := s.probeErr != nil || s.data != "" || s.runtime != "" || s.tooLong != ""; broken != want {
			t.Errorf("broken: %v, want %v", broken, want)
		}
	})
}

// The host of the tests has what they need.
func TestExamine(t *testing.T) {
	h := testHost(t)
	findings, err := h.Examine(t.Context(), hostprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Logf("%+v", f)
		if f.Status == FindingBroken {
			t.Errorf("%+v: install what is missing with: make deps", f)
		}
	}
}

// What would keep a machine from its next start is told beforehand of its images, and
// nothing else is; nothing is changed.
func TestExamineDisks(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // which nobody shall pass
		t.Fatal(err)
	}
	h, err := Open(Options{DataDir: top, Getenv: func(string) string { return top }})
	if err != nil {
		t.Fatal(err)
	}
	o, err := only(spec.Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, namespace: lab}
spec:
  vm:
    maximumCpus: 1
    maximumRam: 128Mi
    networks: []
    display: {}
    disks:
    - volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 8Mi}}}}
    - persistentVolumeClaim: {claimName: other}
`), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(top, "other.img")
	image := func(path string, size int64, begin string) {
		t.Helper()
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(begin), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	image(other, 4<<20, "")
	m, err := h.Create(&o, Given{Disks: map[string]string{"other-claim": other}})
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(m.Data, "data-disk.img")
	look := func() ([]examinedDisk, error) {
		disks, err := h.examineDisks(&m)
		return disks, err
	}
	grows := func(disks []examinedDisk) (sum int64) {
		for _, d := range disks {
			sum += d.grows
		}
		return sum
	}
	if disks, err := look(); err != nil || len(disks) != 2 || grows(disks) < 12<<20-8<<10 || grows(disks) > 12<<20 || exists(data) {
		t.Errorf("before the first start: %+v, %v", disks, err)
	}
	// As a start leaves it.
	image(data, 8<<20, "system")
	if err := (Definition{Given: Given{Disks: map[string]string{"other-claim": other}}, Used: map[string]string{"data-disk": data, "other-claim": other}}).write(m.Directories); err != nil {
		t.Fatal(err)
	}
	record := func() {
		t.Helper()
		text := fmt.Sprintf(`{"disks": {%q: {"format": "raw", "inode": %d}, %q: {"format": "raw", "inode": %d}}}`, data, inode(t, data), other, inode(t, other))
		if err := os.WriteFile(filepath.Join(m.Data, runner.RecordFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record()
	if _, err := look(); err != nil {
		t.Errorf("after a start: %v", err)
	}
	for _, c := range []struct {
		name       string
		spoil      func()
		want, help string
	}{
		{"its own image is gone", func() { _ = os.Remove(data) }, `its image ` + data + ` is gone`, "--disk data-disk=PATH"},
		{"the image was emptied", func() { image(data, 0, "") }, `has no content any more`, "--new-disk data-disk"},
		{"a given one is gone", func() { _ = os.Remove(other) }, `spec.vm.disks[1]: ` + other + `: there is no such file`, "--disk other-claim=PATH"},
		{"it has become another format", func() { image(other, 4<<20, "QFI\xfb\x00\x00\x00\x03") }, `disk "other-claim": ` + other, "put the right image there"},
		{"it is another format's without its file", func() {
			f, err := os.OpenFile(data, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("QFI\xfb")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "it was replaced in place", "put the right image there"},
		{"the manifest is broken", func() { _ = os.WriteFile(m.ManifestFile(), []byte("spec: ["), 0o600) }, "manifest.yaml:", "vmop-cli edit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest, err := os.ReadFile(m.ManifestFile())
			if err != nil {
				t.Fatal(err)
			}
			c.spoil()
			_, err = look()
			help := ""
			for _, e := range unjoin(err) {
				help += whatHelps(e)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(help, c.help) {
				t.Errorf("%v\n%s", err, help)
			}
			image(data, 8<<20, "system")
			image(other, 4<<20, "")
			record()
			if err := os.WriteFile(m.ManifestFile(), manifest, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := look(); err != nil {
				t.Errorf("repaired: %v", err)
			}
		})
	}
	// Somebody else's image in the place of this user's.
	for _, path := range []string{m.Data, filepath.Dir(m.Data), filepath.Dir(filepath.Dir(m.Data)), top} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range entryNames(t, m.Data) {
		if err := os.Chmod(filepath.Join(m.Data, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(other, 0o444); err != nil {
		t.Fatal(err)
	}
	var text string // what it says depends on who reads it
	asnobody.Do(t, func() {
		if _, err = look(); err != nil {
			text = err.Error()
		}
	})
	if !strings.Contains(text, "spec.vm.disks[1]: disk \"other-claim\": "+other+" cannot be written: permission denied for ") || !strings.Contains(whatHelps(err), "have the rights given to you") {
		t.Error(text)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
