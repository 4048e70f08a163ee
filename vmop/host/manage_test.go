package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// A disk that somebody has emptied is none that the machine may boot from.
func TestEmptiedDiskIsTold(t *testing.T) {
	run := t.TempDir()
	h, err := Open(Options{DataDir: t.TempDir(), Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": run}[name] }})
	if err != nil {
		t.Fatal(err)
	}
	o, err := only(spec.Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  vm:
    maximumCpus: 1
    maximumRam: 128Mi
    networks: []
    display: {}
    disks: [{volumeClaimTemplate: {metadata: {name: data}, spec: {resources: {requests: {storage: 8Mi}}}}}]
`), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Create(&o, Given{})
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(m.Data, "data-disk.img")
	if err := (Definition{Used: map[string]string{"data-disk": image}}).write(m.Directories); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var empty *EmptyDiskError
	if _, err := h.Prepare(t.Context(), &o, JobOptions{}); !errors.As(err, &empty) || !empty.Emptied || empty.Path != image {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(image, make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Prepare(t.Context(), &o, JobOptions{}); errors.As(err, &empty) {
		t.Errorf("%v", err)
	}
}

// Of several who make a machine of one name at once one does, and the others are told
// that there is one.
func TestCreatedOnce(t *testing.T) {
	h, err := Open(Options{DataDir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	o, err := only(spec.Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec: {vm: {maximumCpus: 1, maximumRam: 128Mi, networks: [], display: {}}}
`), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = h.Create(&o, Given{}) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, ErrExists):
			t.Errorf("%v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d have made it: %v", made, errs)
	}
}

// A directory that others make and remove meanwhile is missing, or is there. It is not said to be
// another user's.
func TestPrivateDirectoryThatComesAndGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "web")
	var others sync.WaitGroup
	defer others.Wait()
	end := make(chan struct{})
	defer close(end)
	others.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				_ = os.Mkdir(dir, 0o700)
				_ = os.Remove(dir)
			}
		}
	})
	for range 20_000 {
		if err := makePrivate(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

// In /tmp, a link to a directory of this user may be somebody else's.
func TestPrivateDirectoryIsNoLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "vmop")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := makePrivate(link); err == nil || !strings.Contains(err.Error(), "does not belong to this user") {
		t.Error(err)
	}
}

// Whoever makes and deletes a machine at the same time as others succeeds, or is told
// what the others did; nothing is left.
func TestMakersAndDeletersMeet(t *testing.T) {
	h, err := Open(Options{DataDir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	o, err := only(spec.Load("vm.yaml", []byte(`apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web}
spec: {vm: {maximumCpus: 1, maximumRam: 128Mi, networks: [], display: {}}}
`), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	expected := func(err error) bool {
		return err == nil || errors.Is(err, ErrExists) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrBusy)
	}
	var made, deleted atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				m := Machine{Namespace: o.Namespace, Name: o.Name}
				m.Directories, _ = h.Directories(o.Namespace, o.Name)
				err := m.make(&o, Given{})
				if err == nil {
					made.Add(1)
				}
				if !expected(err) {
					t.Errorf("create: %v", err)
				}
				_, err = m.remove(DeleteOptions{})
				if err == nil {
					deleted.Add(1)
				}
				if !expected(err) {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	all.Wait()
	m, err := h.Machine(o.Namespace, o.Name)
	if err == nil { // whose deleter met somebody else
		if _, err := m.remove(DeleteOptions{}); err != nil {
			t.Error(err)
		}
		deleted.Add(1)
	}
	if made.Load() != deleted.Load() {
		t.Errorf("%d were made, %d deleted", made.Load(), deleted.Load())
	}
	if _, err := os.Lstat(m.Data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", m.Data, err)
	}
}
