package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrNoManifest is the error when no manifest is kept with a machine.
var ErrNoManifest = errors.New("no manifest is kept with the machine")

func (d Directories) keep(o *spec.Object, g Given) error {
	def, err := d.Definition()
	if err != nil {
		return err
	}
	def.Given = g.canonical(o.VirtualMachine).over(def.Given)
	return errors.Join(def.write(d), atomicfile.Replace(d.ManifestFile(), manifestText(o)))
}

// Object returns the machine's manifest, defaulted and valid. The error is [ErrNoManifest], or
// describes its faults.
func (m *Machine) Object() (spec.Object, error) {
	data, err := os.ReadFile(m.ManifestFile())
	if errors.Is(err, fs.ErrNotExist) {
		return spec.Object{}, fmt.Errorf("%s: %w", m.FullName(), ErrNoManifest)
	}
	if err != nil {
		return spec.Object{}, err
	}
	return m.objectOf(m.ManifestFile(), data)
}

func (m *Machine) objectOf(file string, data []byte) (spec.Object, error) {
	objects, err := spec.Load(file, data, spec.Options{Default: true, Validate: true})
	if err != nil {
		return spec.Object{}, err
	}
	for _, o := range objects {
		if o.VirtualMachine != nil && o.Name == m.Name && namespaceOr(o.Namespace) == m.Namespace {
			return o, nil
		}
	}
	return spec.Object{}, fmt.Errorf("%s: there is no VirtualMachine %s in it", file, m.FullName())
}
