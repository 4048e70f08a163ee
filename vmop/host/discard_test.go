package host

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// firstMachine is a machine of a host that has none yet.
func firstMachine(t *testing.T) (*Host, *spec.Object) {
	t.Helper()
	testbin.Find(t, testbin.QEMU)
	run, err := os.MkdirTemp("", "vmop") // short, because a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	h, err := Open(Options{DataDir: t.TempDir(), Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": run}[name] }})
	if err != nil {
		t.Fatal(err)
	}
	const text = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    firmware: bios
    maximumCpus: 1
    maximumRam: 128Mi
    accelerator: tcg
    networks: []
    display: {}
    disks: [{volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 8Mi}}}}}]
`
	o, err := only(spec.Load("vm.yaml", []byte(text), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	return h, &o
}

// A machine that was stopped before its first start came to anything leaves nothing, and
// one that somebody has created stays.
func TestFirstStartIsInterrupted(t *testing.T) {
	h, o := firstMachine(t)
	for _, created := range []bool{false, true} {
		if created {
			if _, err := h.Create(o, Given{}); err != nil {
				t.Fatal(err)
			}
		}
		j, err := h.Prepare(t.Context(), o, JobOptions{})
		if err != nil {
			t.Fatal(err)
		}
		j.Interrupted = func() bool { return true }
		outcome, err := j.Supervise(t.Context(), io.Discard)
		if err != nil || outcome.Cause != runner.CauseRequested || outcome.QEMUStatus != "" {
			t.Fatalf("%+v, %v", outcome, err)
		}
		discarded, err := j.Discard()
		if err != nil || discarded == created {
			t.Errorf("created %v: discarded %v, %v", created, discarded, err)
		}
		if _, err := h.Machine("", "web"); created != (err == nil) {
			t.Errorf("created %v: %v", created, err)
		}
	}
}

// A machine that somebody else has started since this start was prepared is not removed by
// it, with what its guest may have written.
func TestStartOfAnotherIsKept(t *testing.T) {
	h, o := firstMachine(t)
	var jobs []*Job
	for range 2 {
		j, err := h.Prepare(t.Context(), o, JobOptions{})
		if err != nil {
			t.Fatal(err)
		}
		j.Interrupted = func() bool { return true }
		jobs = append(jobs, j)
	}
	for _, j := range []*Job{jobs[1], jobs[0]} {
		if _, err := j.Supervise(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		if discarded, err := j.Discard(); err != nil || discarded {
			t.Errorf("discarded %v, %v", discarded, err)
		}
	}
	if _, err := h.Machine("", "web"); err != nil {
		t.Error(err)
	}
}

// A machine that a program has made is kept as one of a manifest is.
func TestMachineThatWasNeverWritten(t *testing.T) {
	h, o := firstMachine(t)
	mine := spec.NewVirtualMachine("apps", "made")
	mine.Spec = *o.VirtualMachine.Spec.DeepCopy()
	m, err := h.Create(&spec.Object{VirtualMachine: mine}, Given{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := m.Object()
	if err != nil || m.FullName() != "apps/made" || kept.VirtualMachine.Name != "made" || len(kept.VirtualMachine.Spec.VM.Disks) != 1 {
		t.Errorf("%s: %+v, %v", m.FullName(), kept.VirtualMachine, err)
	}
	if _, err := h.Prepare(t.Context(), &spec.Object{VirtualMachine: mine}, JobOptions{}); err != nil {
		t.Error(err)
	}
	mine.Name = "Not a name"
	for _, wrong := range []*spec.Object{nil, {}, {VirtualMachine: mine}} {
		if _, err := h.Create(wrong, Given{}); err == nil {
			t.Errorf("%+v is kept", wrong)
		}
		if _, err := h.Prepare(t.Context(), wrong, JobOptions{}); err == nil {
			t.Errorf("%+v is prepared", wrong)
		}
	}
}

// What nobody has provided is found before anything is made.
func TestGivenFilesAreLookedFor(t *testing.T) {
	root, repository := t.TempDir(), t.TempDir()
	run := t.TempDir()
	h, err := Open(Options{DataDir: root, Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": run}[name] }})
	if err != nil {
		t.Fatal(err)
	}
	const text = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumCpus: 1
    maximumRam: 128Mi
    networks: []
    display: {}
    kernelBoot: {kernel: boot/vmlinuz, initrd: /nowhere/initrd}
    disks:
    - cdrom: {image: setup.iso}
    - cdrom: {image: "https://example.org/cd.iso"}
    - cdrom: {image: ""}
    - volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 8Mi}}}}
    - volumeClaimTemplate: {metadata: {name: more}, spec: {resources: {requests: {storage: 8Mi}}}}
`
	o, err := only(spec.Load("vm.yaml", []byte(text), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Prepare(t.Context(), &o, JobOptions{Given: Given{ImageRepository: repository, Disks: map[string]string{"more": repository}}})
	var given *GivenError
	if !errors.As(err, &given) || given.Field != "spec.vm.kernelBoot.kernel" || given.Repository != repository || given.File != filepath.Join(repository, "boot/vmlinuz") || !errors.Is(given, fs.ErrNotExist) {
		t.Fatalf("%+v", err)
	}
	want := []string{
		"spec.vm.kernelBoot.kernel: the image repository " + repository + " has no boot/vmlinuz",
		"spec.vm.kernelBoot.initrd: /nowhere/initrd: there is no such file",
		"spec.vm.disks[0].cdrom.image: the image repository " + repository + " has no setup.iso",
		`spec.vm.disks[4]: disk "more-disk": ` + repository + " cannot be read and written: it is a directory, and no file or block device",
	}
	if got := strings.Split(err.Error(), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("made %v, %v", entries, err)
	}
}
