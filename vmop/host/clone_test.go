package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// bench is a host with a machine that has run once, so far as files tell.
type bench struct {
	*testing.T
	h *Host
	m Machine
	// external is a disk outside of the machine's directory.
	external string
}

const benchManifest = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, namespace: lab}
spec:
  cloudInit: {userData: {packages: [git]}}
  vm:
    maximumCpus: 1
    maximumRam: 1Gi
    machineUuid: 0f4e2a3c-0000-4000-8000-000000000001
    networks: []
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 1Mi}}}
    - persistentVolumeClaim: {claimName: data}
    display: {}
`

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchIn(t, t.TempDir())
}

func newBenchIn(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{T: t, external: filepath.Join(dir, "data.qcow2")}
	var err error
	b.h, err = Open(Options{DataDir: filepath.Join(dir, "vmop"), Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": dir}[name] }})
	b.ok(err)
	o, err := only(spec.Load("web.yaml", []byte(benchManifest), spec.Options{Default: true, Validate: true}))
	b.ok(err)
	b.ok(os.WriteFile(b.external, []byte("data\x00"), 0o600))
	b.m, err = b.h.Create(&o, Given{Disks: map[string]string{"data": b.external}, Accelerator: "tcg"})
	b.ok(err)
	system := filepath.Join(b.m.Data, "system-disk.img")
	b.ok(os.WriteFile(system, append([]byte("system"), make([]byte, 1<<20)...), 0o600))
	b.ok(os.Truncate(system, 64<<20)) // a hole at the end
	for name, text := range map[string]string{"uuid.txt": "uuid\n", "fw-vars.uefi.fd": "vars", "tpm2-00.permall": "tpm", stateFile: `{"name":"web","namespace":"lab","phase":"Stopped"}`} {
		b.ok(os.WriteFile(filepath.Join(b.m.Data, name), []byte(text), 0o600))
	}
	record, err := json.Marshal(map[string]any{"machineType": "pc-q35-7.2", "disks": map[string]any{
		system: map[string]any{"format": "raw", "inode": b.inode(system), "name": "system-disk"}, b.external: map[string]any{"format": "raw", "inode": 1, "name": "data-claim"},
	}})
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(b.m.Data, runner.RecordFile), record, 0o600))
	def, err := b.m.Definition()
	b.ok(err)
	def.Used = map[string]string{"system-disk": system, "data-claim": b.external}
	b.ok(def.write(b.m.Directories))
	b.m = b.machine("web")
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) machine(name string) Machine {
	b.Helper()
	m, err := b.h.Machine("lab", name)
	b.ok(err)
	return m
}

func (b *bench) inode(path string) uint64 {
	b.Helper()
	info, err := os.Stat(path)
	b.ok(err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// begins is how a file begins, "" if there is none.
func (b *bench) begins(path string) string {
	b.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	b.ok(err)
	return strings.TrimRight(string(data[:min(len(data), 64)]), "\x00\n")
}

// recorded are the disks of a record, with whether the file is the recorded one.
func (b *bench) recorded(m Machine) map[string]bool {
	b.Helper()
	var r struct {
		MachineType string
		Disks       map[string]struct{ Inode uint64 }
	}
	data, err := os.ReadFile(filepath.Join(m.Data, runner.RecordFile))
	b.ok(err)
	b.ok(json.Unmarshal(data, &r))
	if r.MachineType != "pc-q35-7.2" {
		b.Errorf("the machine type is %q", r.MachineType)
	}
	out := map[string]bool{}
	for path, d := range r.Disks {
		out[path] = exists(path) && d.Inode == b.inode(path)
	}
	return out
}

// starts checks that a machine would start with disks that it has had, and returns
// them, and its instance-id.
func (b *bench) starts(m Machine) (disks map[string]string, instance string) {
	b.Helper()
	o, err := m.Object()
	b.ok(err)
	c, _, err := b.h.configuration(&o, Given{})
	b.ok(err)
	j := &Job{Directories: m.Directories, Config: c}
	b.ok(j.decideDisks(o.VirtualMachine, JobOptions{}))
	if len(j.NewDisks) != 0 {
		b.Errorf("%s would get new disks: %v", m.FullName(), j.NewDisks)
	}
	return j.Definition.Used, c.Runner.CloudInit.MetaData[instanceIDKey]
}

func TestClone(t *testing.T) {
	b := newBench(t)
	var last int64
	clone, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{Progress: func(done, _ int64) { last = done }})
	b.ok(err)
	disks, instance := b.starts(clone)
	want := map[string]string{"system-disk": filepath.Join(clone.Data, "system-disk.img"), "data-claim": filepath.Join(clone.Data, "data-claim.img")}
	if !maps.Equal(disks, want) {
		t.Errorf("its disks are %v", disks)
	}
	for path, text := range map[string]string{
		want["system-disk"]: "system", want["data-claim"]: "data", filepath.Join(clone.Data, "fw-vars.uefi.fd"): "vars",
		filepath.Join(clone.Data, "tpm2-00.permall"): "tpm", filepath.Join(clone.Data, "uuid.txt"): "", b.external: "data",
	} {
		if got := b.begins(path); got != text {
			t.Errorf("%s begins with %q, want %q", path, got, text)
		}
	}
	if got := b.recorded(clone); !maps.Equal(got, map[string]bool{want["system-disk"]: true, want["data-claim"]: true}) {
		t.Errorf("recorded is %v", got)
	}
	if !strings.HasPrefix(instance, "lab.copy-") || last == 0 {
		t.Errorf("instance-id %s, %d bytes copied", instance, last)
	}
	if o, err := clone.Object(); err != nil || o.VirtualMachine.Spec.VM.MachineUUID != "" {
		t.Errorf("%v, the UUID is another machine's", err)
	}
	if size, err := allocated(want["system-disk"]); err != nil || size > 8<<20 {
		t.Errorf("the copy has %d bytes, %v: its hole was filled", size, err)
	}
	if clone.Status != StatusStopped || clone.State.Message != "it was not started yet" {
		t.Errorf("%s: %s", clone.Status, clone.State.Message)
	}
	if _, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	b.empty(filepath.Dir(b.m.Data), "web", "copy")
}

// empty checks that a directory has nothing but some entries.
func (b *bench) empty(dir string, but ...string) {
	b.Helper()
	entries, err := os.ReadDir(dir)
	b.ok(err)
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) {
			b.Errorf("%s was left in %s", e.Name(), dir)
		}
	}
}

// abandon makes a directory that somebody has left long ago.
func (b *bench) abandon(dir string) {
	b.Helper()
	then := time.Now().Add(-2 * abandonedAge)
	b.ok(errors.Join(os.MkdirAll(dir, 0o700), os.Chtimes(dir, then, then)))
}

// What is just being made is not taken for abandoned, though it is not locked yet.
func TestNotYetLocked(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(filepath.Dir(b.m.Data), ".clone-copy-1")
	b.ok(os.Mkdir(dir, 0o700))
	b.ok(removeAbandoned(filepath.Dir(dir), ".clone-copy-"))
	if !exists(dir) {
		t.Error("it was removed")
	}
}

// A clone that is given up leaves nothing, and one that died is swept up.
func TestInterruptedClone(t *testing.T) {
	b := newBench(t)
	b.abandon(filepath.Join(filepath.Dir(b.m.Data), ".clone-copy-1"))
	if all, err := b.h.List(ListOptions{Leftovers: true}); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	cancel(given)
	if _, err := b.h.Clone(ctx, b.m, "lab", "copy", CopyOptions{}); !errors.Is(err, given) {
		t.Errorf("%v", err)
	}
	b.empty(filepath.Dir(b.m.Data), "web")
}

func TestRename(t *testing.T) {
	b := newBench(t)
	_, before := b.starts(b.m)
	renamed, err := b.h.Rename(b.m, "shop", "front")
	b.ok(err)
	b.isRenamed(renamed, before)
	if exists(filepath.Dir(b.m.Data)) {
		t.Error("the empty namespace is left")
	}
	if _, err := b.h.Machine("lab", "web"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	again, err := b.h.Rename(renamed, "lab", "web")
	b.ok(err)
	if disks, instance := b.starts(again); instance != before || disks["system-disk"] != filepath.Join(again.Data, "system-disk.img") {
		t.Errorf("%v, %s", disks, instance)
	}
}

func (b *bench) isRenamed(m Machine, instance string) {
	b.Helper()
	disks, got := b.starts(m)
	if want := map[string]string{"system-disk": filepath.Join(m.Data, "system-disk.img"), "data-claim": b.external}; !maps.Equal(disks, want) {
		b.Errorf("its disks are %v", disks)
	}
	if got != instance || b.begins(filepath.Join(m.Data, "uuid.txt")) != "uuid" {
		b.Errorf("its identity changes: %s", got)
	}
	if r := b.recorded(m); !r[filepath.Join(m.Data, "system-disk.img")] || len(r) != 2 {
		b.Errorf("recorded is %v", r)
	}
	if m.State.Name != m.Name || m.State.Namespace != m.Namespace {
		b.Errorf("its state is that of %s/%s", m.State.Namespace, m.State.Name)
	}
	b.empty(m.Data, "system-disk.img", "uuid.txt", runner.RecordFile, "fw-vars.uefi.fd", "tpm2-00.permall", stateFile, manifestFile, definitionFile, runner.LockFile)
}

// A renaming that is interrupted has happened or has not.
func TestInterruptedRename(t *testing.T) {
	b := newBench(t)
	_, before := b.starts(b.m)
	to, err := b.h.free("lab", "front")
	b.ok(err)
	b.ok(b.m.stageRename(to, "lab", "front"))
	b.starts(b.machine("web")) // it still has its name
	b.ok(os.Rename(b.m.Data, to.Data))
	entries, err := os.ReadDir(pendingDir(to.Data, "lab", "front"))
	b.ok(err)
	if len(entries) < 3 {
		t.Fatal(entries)
	}
	b.ok(os.Rename(filepath.Join(pendingDir(to.Data, "lab", "front"), entries[1].Name()), filepath.Join(to.Data, entries[1].Name())))
	b.isRenamed(b.machine("front"), before)
}

func TestSnapshots(t *testing.T) {
	b := newBench(t)
	system := filepath.Join(b.m.Data, "system-disk.img")
	s, err := b.h.CreateSnapshot(t.Context(), b.m, "first", CopyOptions{})
	b.ok(err)
	if len(s.Disks) != 2 || s.Allocated == 0 {
		t.Errorf("%+v", s)
	}
	b.change(system)
	if err := b.h.RestoreSnapshot(t.Context(), b.m, "none", RestoreOptions{}); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	b.ok(b.h.RestoreSnapshot(t.Context(), b.m, "first", RestoreOptions{Keep: "present"}))
	b.isFirst()
	if b.begins(b.external) != "newer data" {
		t.Error("an image outside of the machine's directory was written to")
	}
	if all, err := b.m.Snapshots(); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	// And back to what was kept.
	b.ok(b.h.RestoreSnapshot(t.Context(), b.machine("web"), "present", RestoreOptions{}))
	disks, _ := b.starts(b.machine("web"))
	if b.begins(disks["system-disk"]) != "newer" || b.begins(disks["data-claim"]) != "newer data" || b.begins(filepath.Join(b.m.Data, "tpm2-00.volatilestate")) != "new" {
		t.Errorf("the present state is gone: %v", disks)
	}
	// A snapshot is its machine's, whatever that is called.
	renamed, err := b.h.Rename(b.machine("web"), "lab", "front")
	b.ok(err)
	b.ok(b.h.RestoreSnapshot(t.Context(), renamed, "first", RestoreOptions{}))
	disks, instance := b.starts(b.machine("front"))
	if b.begins(disks["system-disk"]) != "system" || b.begins(disks["data-claim"]) != "data" || filepath.Dir(disks["data-claim"]) != renamed.Data || instance != "lab.web" {
		t.Errorf("%v, %s", disks, instance)
	}
	b.ok(renamed.DeleteSnapshot("first"))
	if err := renamed.DeleteSnapshot("first"); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	for _, name := range []string{"", "..", "a/b", ".x", strings.Repeat("a", 64)} {
		if _, err := b.h.CreateSnapshot(t.Context(), renamed, name, CopyOptions{}); err == nil {
			t.Errorf("a snapshot is called %q", name)
		}
	}
	kept, err := renamed.remove(DeleteOptions{})
	b.ok(err)
	if !slices.ContainsFunc(kept, func(f File) bool { return f.Kind == FileSnapshots && f.Size > 0 }) {
		t.Errorf("snapshots were not kept: %v", kept)
	}
	renamed, err = b.h.FindAny("front", "lab")
	b.ok(err)
	if kept, err := renamed.remove(DeleteOptions{Disks: true}); err != nil || len(kept) != 0 || exists(renamed.Data) {
		t.Errorf("%v, %v", kept, err)
	}
}

// change is what a guest and a person do to a machine.
func (b *bench) change(system string) {
	b.Helper()
	for path, text := range map[string]string{system: "newer", b.external: "newer data", filepath.Join(b.m.Data, "tpm2-00.permall"): "newer tpm", filepath.Join(b.m.Data, "tpm2-00.volatilestate"): "new"} {
		b.ok(os.WriteFile(path, []byte(text), 0o600))
	}
	b.ok(os.WriteFile(b.m.ManifestFile(), []byte(strings.Replace(benchManifest, "1Gi", "2Gi", 1)), 0o600))
}

// isFirst checks that the machine is as it was before change.
func (b *bench) isFirst() {
	b.Helper()
	m := b.machine("web")
	disks, instance := b.starts(m)
	if b.begins(disks["system-disk"]) != "system" || b.begins(disks["data-claim"]) != "data" || instance != "lab.web" {
		b.Errorf("%v, %s", disks, instance)
	}
	if r := b.recorded(m); !maps.Equal(r, map[string]bool{disks["system-disk"]: true, disks["data-claim"]: true}) {
		b.Errorf("recorded is %v", r)
	}
	if o, err := m.Object(); err != nil || o.VirtualMachine.Spec.VM.MaximumRAM.String() != "1Gi" {
		b.Errorf("the manifest was not restored: %v", err)
	}
	if b.begins(filepath.Join(m.Data, "tpm2-00.permall")) != "tpm" || exists(filepath.Join(m.Data, "tpm2-00.volatilestate")) {
		b.Error("the TPM's state was not restored")
	}
}

// Wherever a restoration is interrupted, the machine is what it was before or what
// it was then.
func TestInterruptedRestore(t *testing.T) {
	b := newBench(t)
	system := filepath.Join(b.m.Data, "system-disk.img")
	first, err := b.h.CreateSnapshot(t.Context(), b.m, "first", CopyOptions{})
	b.ok(err)
	// At first it is only staged, then made, then its files are in their places one
	// after the other, and then the list of those that go is removed.
	for moved, last := -2, false; !last; moved++ {
		b.change(system)
		b.ok(os.RemoveAll(filepath.Join(b.m.Data, "data-claim.img")))
		def, err := b.m.Definition()
		b.ok(err)
		def.Used["data-claim"], def.Disks["data-claim"] = b.external, b.external
		b.ok(def.write(b.m.Directories))
		remove, err := b.h.stageRestore(t.Context(), &b.m, first, CopyOptions{})
		b.ok(err)
		if moved == -2 {
			if disks, _ := b.starts(b.machine("web")); b.begins(disks["system-disk"]) != "newer" || b.begins(disks["data-claim"]) != "newer data" {
				t.Error("it was made before it was complete")
			}
			continue
		}
		b.ok(commit(b.m.Data, "lab", "web", remove))
		pending := pendingDir(b.m.Data, "lab", "web")
		entries, err := os.ReadDir(pending)
		b.ok(err)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == removedFile })
		if moved >= 0 {
			for _, name := range remove {
				b.ok(os.Remove(filepath.Join(b.m.Data, name)))
			}
			for _, e := range entries[:min(moved, len(entries))] {
				b.ok(os.Rename(filepath.Join(pending, e.Name()), filepath.Join(b.m.Data, e.Name())))
			}
		}
		if last = moved > len(entries); last {
			b.ok(os.Remove(filepath.Join(pending, removedFile)))
		}
		b.isFirst()
		if t.Failed() {
			t.Fatalf("after %d of %d files", moved, len(entries))
		}
	}
}

// What runs, has no image or shares one with a machine that runs is not copied.
func TestRefusedCopies(t *testing.T) {
	b := newBench(t)
	running := b.m
	running.Runner = os.Getpid()
	if err := b.h.RestoreSnapshot(t.Context(), running, "s", RestoreOptions{}); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	if _, err := b.h.Rename(running, "lab", "front"); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Error(err)
	}
	running.Status = Status(runner.PhaseStarting)
	if _, err := b.h.CreateSnapshot(t.Context(), running, "s", CopyOptions{}); err == nil || !strings.Contains(err.Error(), "just being started") {
		t.Error(err)
	}
	lock, err := runner.Lock(b.m.Data)
	b.ok(err)
	if _, err := b.h.Rename(b.m, "lab", "front"); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	b.ok(lock.Close())
	b.ok(os.Remove(filepath.Join(b.m.Data, "system-disk.img")))
	if _, err := b.h.CreateSnapshot(t.Context(), b.m, "s", CopyOptions{}); err == nil || !strings.Contains(err.Error(), `disk "system-disk" has no image yet`) {
		t.Error(err)
	}
	b.empty(b.m.Data, "uuid.txt", runner.RecordFile, "fw-vars.uefi.fd", "tpm2-00.permall", stateFile, manifestFile, definitionFile, runner.LockFile)
}
