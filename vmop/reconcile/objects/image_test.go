package objects_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

func TestRunnerImage(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	images := map[string]string{
		"ghcr.io/mnlipp/*": "ours:any", "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-alpine*": "ours:alpine",
		"ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:4.0.1": "ours:exact", "registry.example.org/runner:1": "ours:1",
	}
	for _, c := range []struct {
		image  spec.RunnerImage
		s      objects.Settings
		want   string
		former bool
	}{
		{want: objects.DefaultImage(), former: true},
		{s: objects.Settings{RunnerImage: "ours:2", RunnerImages: images}, want: "ours:2"},
		{s: objects.Settings{RunnerImages: images}, want: "ours:any"},
		{image: spec.RunnerImage{Source: "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:4.0.1"}, s: objects.Settings{RunnerImage: "ours:2"}, want: "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:4.0.1", former: true},
		{image: spec.RunnerImage{Source: "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:4.0.1"}, s: objects.Settings{RunnerImages: images}, want: "ours:exact"},
		{image: spec.RunnerImage{Source: "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-arch:4.0.0"}, s: objects.Settings{RunnerImages: images}, want: "ours:any"},
		{image: spec.RunnerImage{Source: "ghcr.io/mnlipp/org.jdrupes.vmoperator.runner.qemu-alpine"}, s: objects.Settings{RunnerImages: images}, want: "ours:alpine"},
		{image: spec.RunnerImage{Repository: "registry.example.org", Path: "runner", Version: "1"}, s: objects.Settings{RunnerImages: images}, want: "ours:1"},
		{image: spec.RunnerImage{Repository: "registry.example.org", Path: "runner", Version: "2"}, s: objects.Settings{RunnerImages: images}, want: "registry.example.org/runner:2"},
		{image: spec.RunnerImage{Repository: "registry.example.org", Path: "runner", Version: digest}, want: "registry.example.org/runner@" + digest},
		{image: spec.RunnerImage{Repository: "registry.example.org", Path: "runner@" + digest}, want: "registry.example.org/runner@" + digest},
		{s: objects.Settings{RunnerImage: "registry.example.org/runner:2@" + digest}, want: "registry.example.org/runner:2@" + digest},
		{image: spec.RunnerImage{Source: "registry.example.org/runner@" + digest}, s: objects.Settings{RunnerImages: map[string]string{"registry.example.org/*": "ours@" + digest}}, want: "ours@" + digest},
		{image: spec.RunnerImage{Source: "org.jdrupes.vmoperator.runner.qemu-alpine@sha256:0"}, want: "org.jdrupes.vmoperator.runner.qemu-alpine@sha256:0", former: true},
		{image: spec.RunnerImage{Source: "example.org/org.jdrupes.vmoperator.runner.qemu/mine"}, want: "example.org/org.jdrupes.vmoperator.runner.qemu/mine"},
	} {
		vm := &spec.VirtualMachine{}
		if c.image != (spec.RunnerImage{}) {
			vm.Spec.Image = &c.image
		}
		spec.Default(vm)
		got := objects.RunnerImage(vm, &c.s)
		if got != c.want || objects.IsFormerRunner(got) != c.former {
			t.Errorf("%+v, %v: %s, VM-Operator's %t", c.image, c.s.RunnerImages != nil, got, objects.IsFormerRunner(got))
		}
	}
}
