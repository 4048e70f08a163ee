package host

import (
	"errors"
	"sync"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

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
