package imagebases

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Base is an image that recipes are based on.
type Base struct {
	// Name is the recipes' name for it, with a tag: debian:trixie-slim.
	Name string
	// Image is its digest and registry.
	Image name.Digest
}

func (b Base) tagged() (name.Tag, error) {
	_, tag, is := strings.Cut(b.Name, ":")
	if !is {
		return name.Tag{}, fmt.Errorf("%s has no tag; write it as recipes do, such as debian:trixie-slim", b.Name)
	}
	return name.NewTag(b.Image.Context().Name()+":"+tag, name.StrictValidation)
}

// Read reads a file of bases. An error names the line.
func Read(file string) ([]Base, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var bases []Base
	for n, line := range lines(string(data)) {
		if b, is, err := parse(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		} else if is {
			bases = append(bases, b)
		}
	}
	return bases, nil
}

// Renew asks the registries for the present digests of the names, and updates them in the file,
// leaving everything else. It returns the bases that have changed.
func Renew(ctx context.Context, file string, options ...remote.Option) ([]Base, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := lines(string(data))
	var changed []Base
	for n, line := range all {
		b, is, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		if !is {
			continue
		}
		tag, err := b.tagged()
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		d, err := remote.Head(tag, append(options, remote.WithContext(ctx))...)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: which image %s is: %w", file, n+1, tag, err)
		}
		if image := tag.Context().Digest(d.Digest.String()); image.DigestStr() != b.Image.DigestStr() {
			all[n] = b.Name + " " + image.Name()
			changed = append(changed, Base{Name: b.Name, Image: image})
		}
	}
	if changed == nil {
		return nil, nil
	}
	return changed, os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644)
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func parse(line string) (b Base, is bool, err error) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return Base{}, false, nil
	}
	if len(words) != 2 {
		return Base{}, false, fmt.Errorf("found %q; write a name and an image, such as \"debian:trixie-slim docker.io/library/debian@sha256:…\"", line)
	}
	image, err := name.NewDigest(words[1], name.StrictValidation)
	if err != nil {
		return Base{}, false, fmt.Errorf("%s: write an image with its digest, such as docker.io/library/debian@sha256:…: %w", words[0], err)
	}
	return Base{Name: words[0], Image: image}, true, nil
}
