package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/vmop/sdk/internal/answercd"
	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// maxDocument is the maximum size of a Secret, in bytes.
const maxDocument = 1 << 20

// writeSeed creates the NoCloud image. Errors must not contain its content.
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
	switch from := c.UserDataFrom; {
	case from != nil:
		in.UserDataText, in.AnyUserData = read("userDataFrom", from), from.AnyForm
	case c.UserDataText != "":
		in.UserDataText, in.AnyUserData = []byte(c.UserDataText), true
	}
	if in.AnyUserData && in.UserDataText != nil {
		if err := cloudinit.CheckUserData(in.UserDataText); err != nil {
			e.message(LevelWarning, "the user data %v; cloud-init makes nothing of it, and the machine is started nevertheless", err)
		}
	}
	in.NetworkConfigText = read("networkConfigFrom", c.NetworkConfigFrom)
	return in, errors.Join(errs...)
}

// writeAnswers creates the CD with the answers of Windows' setup. Errors must not contain its
// content.
func (e *Engine) writeAnswers(path string) error {
	c := e.o.Config.Runner.Sysprep
	var in answercd.Files
	var errs []error
	for _, f := range []struct {
		from *runnerconfig.CloudInitSource
		to   *[]byte
	}{{c.Unattend, &in.Unattend}, {c.Autounattend, &in.Autounattend}} {
		if f.from == nil {
			continue
		}
		data, err := e.document(f.from)
		if errors.Is(err, errNoDocument) {
			continue // one of them suffices
		}
		*f.to = data
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sysprep: %w", err)
	}
	if in.Unattend == nil && in.Autounattend == nil {
		return fmt.Errorf("sysprep: %w", missingKey(c))
	}
	if err := answercd.Write(path, in); err != nil {
		return fmt.Errorf("sysprep: CD with the answers: %w", err)
	}
	return nil
}

func missingKey(c *runnerconfig.Sysprep) error {
	var keys []string
	secret := ""
	for _, s := range c.Sources() {
		keys, secret = append(keys, (*s).Key), (*s).Secret
	}
	return fmt.Errorf("there is no key %s in the Secret %s, or no such Secret: add it, and the machine starts", strings.Join(keys, " or "), secret)
}

var errNoDocument = errors.New("add it, and the machine starts")

func (e *Engine) document(s *runnerconfig.CloudInitSource) ([]byte, error) {
	data, err := e.keyOf(s, s.Key, s.File)
	if errors.Is(err, errNoDocument) && s.OtherKey != "" {
		if other, oerr := e.keyOf(s, s.OtherKey, s.OtherFile); !errors.Is(oerr, errNoDocument) {
			return other, oerr
		}
	}
	return data, err
}

func (e *Engine) keyOf(s *runnerconfig.CloudInitSource, key, file string) ([]byte, error) {
	missing := fmt.Errorf("there is no key %s in the Secret %s, or no such Secret: %w", key, s.Secret, errNoDocument)
	if file == "" {
		data, ok := e.o.Secrets[s.Secret][key]
		if !ok {
			return nil, missing
		}
		return append([]byte{}, data...), nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s of the Secret %s: %w", key, s.Secret, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("has more than %d KiB", maxDocument>>10)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s of the Secret %s: %w", key, s.Secret, err)
	}
	return data, nil
}

// withDigests returns the configuration with the digests of its documents' contents: a change of
// one is then a change for the next start.
func (e *Engine) withDigests(c runnerconfig.Config) runnerconfig.Config {
	if len(c.Runner.Sources()) == 0 {
		return c
	}
	if c.Runner.CloudInit != nil {
		seed := *c.Runner.CloudInit
		c.Runner.CloudInit = &seed
	}
	if c.Runner.Sysprep != nil {
		answers := *c.Runner.Sysprep
		c.Runner.Sysprep = &answers
	}
	for _, s := range c.Runner.Sources() {
		source := **s
		if source.File != "" || source.ContentDigest == "" {
			source.ContentDigest = ""
			if data, err := e.document(&source); err == nil {
				source.ContentDigest = runnerconfig.ContentDigest(data)
			}
		}
		*s = &source
	}
	return c
}
