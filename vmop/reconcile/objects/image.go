package objects

import (
	"cmp"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// formerRunner begins the last part of the names of VM-Operator's runner images, a Java program
// on Arch (…runner.qemu-arch) or Alpine Linux (…runner.qemu-alpine), from any registry.
const formerRunner = "org.jdrupes.vmoperator.runner."

// IsFormerRunner reports whether an image is one of VM-Operator's runner. It cannot run in the
// pods that [Pod] creates: it needs root and all devices.
func IsFormerRunner(image string) bool {
	return strings.HasPrefix(image[strings.LastIndexByte(image, '/')+1:], formerRunner)
}

// RunnerImage returns the full name of the image of a machine, with its defaults applied, as the
// settings change it.
func RunnerImage(vm *spec.VirtualMachine, s *Settings) string {
	i := cmp.Or(vm.Spec.Image, &spec.RunnerImage{Source: names.FormerImage})
	name := i.Source
	if name == "" {
		name = i.Repository + "/" + i.Path
		switch {
		case strings.Contains(i.Version, ":"): // a digest; tags have no colon
			name += "@" + i.Version
		case i.Version != "":
			name += ":" + i.Version
		}
	}
	if s.RunnerImage != "" && name == DefaultImage() {
		return s.RunnerImage
	}
	longest := -1
	out := name
	for pattern, image := range s.RunnerImages {
		stem, open := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == name:
			return image
		case open && strings.HasPrefix(name, stem) && len(stem) > longest:
			out, longest = image, len(stem)
		}
	}
	return out
}

// DefaultImage is the image of a manifest that names none, as VM-Operator's definition stores it.
func DefaultImage() string { return names.FormerImage }
