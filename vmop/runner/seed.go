package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// maxDocument bounds a document that comes from a Secret, in bytes: what a Secret
// holds.
const maxDocument = 1 << 20

// writeSeed makes the NoCloud image. No error has anything of what is in it.
func (e *Engine) writeSeed(uuid, path string) error {
	c := e.o.Config.Runner.CloudInit
	in, err := e.seedInput(c, uuid)
	if err != nil {
		return fmt.Errorf("cloud-init: %w", err)
	}
	docs, err := cloudinit.Render(in)
	if err != nil {
		return fmt.Errorf("cloud-init: %w", err)
	}
	image, err := cloudinit.Image(docs)
	if err != nil {
		return fmt.Errorf("cloud-init image: %w", err)
	}
	if err := atomicfile.Replace(path, image); err != nil {
		return fmt.Errorf("cloud-init image: %w", err)
	}
	return nil
}

// seedInput reads what is not in the configuration.
func (e *Engine) seedInput(c *runnerconfig.CloudInit, uuid string) (cloudinit.Input, error) {
	in := cloudinit.Input{MetaData: maps.Clone(c.SeedMetaData(uuid)), MetaDataValues: c.MetaDataValues, UserData: c.UserData, NetworkConfig: c.NetworkConfig}
	var errs []error
	read := func(field string, s *runnerconfig.CloudInitSource) []byte {
		if s == nil {
			return nil
		}
		data, err := e.document(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
		return data
	}
	if meta := read("metaDataFrom", c.MetaDataFrom); meta != nil {
		given, err := cloudinit.ParseMetaData(meta)
		if err != nil {
			errs = append(errs, fmt.Errorf("metaDataFrom: the key %s of the Secret %s: %w", c.MetaDataFrom.Key, c.MetaDataFrom.Secret, err))
		}
		maps.Copy(in.MetaData, given)
	}
	in.UserDataText = read("userDataFrom", c.UserDataFrom)
	in.NetworkConfigText = read("networkConfigFrom", c.NetworkConfigFrom)
	return in, errors.Join(errs...)
}

// document reads a document that is a key of a Secret; it is not nil unless there is
// an error.
func (e *Engine) document(s *runnerconfig.CloudInitSource) ([]byte, error) {
	missing := fmt.Errorf("there is no key %s in the Secret %s, or no such Secret: add it, and the machine starts", s.Key, s.Secret)
	if s.File == "" {
		data, ok := e.o.Secrets[s.Secret][s.Key]
		if !ok {
			return nil, missing
		}
		return append([]byte{}, data...), nil
	}
	f, err := os.Open(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s of the Secret %s: %w", s.Key, s.Secret, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("has more than %d KiB", maxDocument>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s of the Secret %s: %w", s.Key, s.Secret, err)
	}
	return data, nil
}

// withDigests is a configuration that knows the contents of its documents by their
// digests, so that a change of one is seen as what it is: one for the next start.
func (e *Engine) withDigests(c runnerconfig.Config) runnerconfig.Config {
	if len(c.Runner.CloudInit.Sources()) == 0 {
		return c
	}
	seed := *c.Runner.CloudInit
	for _, s := range seed.Sources() {
		source := **s
		if source.File != "" || source.ContentDigest == "" {
			source.ContentDigest = ""
			if data, err := e.document(&source); err == nil {
				source.ContentDigest = runnerconfig.ContentDigest(data)
			}
		}
		*s = &source
	}
	c.Runner.CloudInit = &seed
	return c
}
