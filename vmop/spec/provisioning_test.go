package spec_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// Bytes count, not characters, and nothing of the data is told.
func TestUserDataIsCountedInBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "#!" + rapid.StringOfN(rapid.SampledFrom([]rune("abcäé中🖥")), 480, 1200, -1).Draw(t, "text")
		vm := spectest.VirtualMachine().Draw(t, "machine")
		vm.Spec.CloudInit = nil
		vm.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: text}
		errs := spec.Validate(vm)
		if fits := len(text) <= limits.MaxInlineUserData; fits != (len(errs) == 0) {
			t.Fatalf("%d bytes: %v", len(text), errs)
		}
		for _, e := range errs {
			if strings.Contains(e.Error(), text[2:20]) {
				t.Errorf("it is told: %v", e)
			}
		}
	})
}

// Exactly the field of the type is given.
func TestProvisioningOfOneType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "machine")
		vm.Spec.CloudInit = nil
		p := &spec.Provisioning{Type: rapid.SampledFrom([]spec.ProvisioningType{
			spec.ProvisioningUserData, spec.ProvisioningUserDataRef, spec.ProvisioningSysprepRef, "", "Other",
		}).Draw(t, "type")}
		data, user, sysprep := rapid.Bool().Draw(t, "data"), rapid.Bool().Draw(t, "user"), rapid.Bool().Draw(t, "sysprep")
		if data {
			p.UserData = "#cloud-config"
		}
		if user {
			p.UserDataRef = &spec.ProvisioningSecret{Name: "a"}
		}
		if sysprep {
			p.SysprepRef = &spec.ProvisioningSecret{Kind: "Secret", Name: "a"}
		}
		vm.Spec.VM.Disks = nil
		vm.Spec.Provisioning = p
		right := data == (p.Type == spec.ProvisioningUserData) && user == (p.Type == spec.ProvisioningUserDataRef) &&
			sysprep == (p.Type == spec.ProvisioningSysprepRef) && (data || user || sysprep)
		if errs := spec.Validate(vm); right != (len(errs) == 0) {
			t.Fatalf("%+v: %v", p, errs)
		}
	})
}

func TestProvisioningIsRefused(t *testing.T) {
	cds := strings.Repeat("{cdrom: {image: ''}},", limits.MaxCDs)
	for what, c := range map[string]struct{ spec, says string }{
		"beside cloudInit": {"{cloudInit: {}, provisioning: {type: UserData, userData: x}, vm: {maximumCpus: 1}}",
			"spec.provisioning: Forbidden: there is cloudInit already; give either cloudInit or provisioning"},
		"another kind": {"{provisioning: {type: UserDataRef, userDataRef: {kind: ConfigMap, name: a}}, vm: {maximumCpus: 1}}", `spec.provisioning.userDataRef.kind: Unsupported value: "ConfigMap"`},
		"no name":      {"{provisioning: {type: UserDataRef, userDataRef: {name: ''}}, vm: {maximumCpus: 1}}", "spec.provisioning.userDataRef.name: Required value: name the Secret"},
		"a seventh CD": {"{provisioning: {type: SysprepRef, sysprepRef: {name: a}}, vm: {maximumCpus: 1, disks: [" + cds + "]}}",
			"spec.provisioning.sysprepRef: Forbidden: is a CD, and vm.disks has 6 of them: together there may be 6"},
		"a NUL": {`{provisioning: {type: UserData, userData: "#!/bin/sh\0secret"}, vm: {maximumCpus: 1}}`, "spec.provisioning.userData: Invalid value: \"(not shown)\": must not contain NUL bytes"},
	} {
		_, err := spec.Load("vm.yaml", []byte(header+"spec: "+c.spec+"\n"), spec.Options{Validate: true})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "vm.yaml:4: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// User data that cloud-init would ignore is told of, with its place and without what it
// says, and is no error.
func TestUserDataOfNoUse(t *testing.T) {
	for what, c := range map[string]struct{ data, says string }{
		"cloud-config":     {"#cloud-config\npackages: [nginx]\n", ""},
		"only a header":    {"#cloud-config\n", ""},
		"a script":         {"#!/bin/sh\n: {[", ""},
		"templates":        {"## template: jinja\n#cloud-config\na: {{ b }}\n", ""},
		"no header":        {"packages: [correct-horse]\n", "begins in no way that cloud-init knows"},
		"broken":           {"#cloud-config\nusers: [correct-horse\n", "is no YAML that can be used"},
		"a list":           {"#cloud-config\n- correct-horse\n", "is cloud-config, and must be a mapping then"},
		"header, not line": {"#cloud-config correct-horse: [\n", ""}, // cloud-init takes it for something else
	} {
		text := header + "spec:\n  provisioning:\n    type: UserData\n    userData: |\n      " + strings.ReplaceAll(c.data, "\n", "\n      ") + "\n  vm: {maximumCpus: 1}\n"
		found, err := spec.Load("vm.yaml", []byte(text), spec.Options{Validate: true})
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %v", what, err)
			continue
		}
		warnings := found[0].Warnings
		if c.says == "" && len(warnings) == 0 {
			continue
		}
		if len(warnings) != 1 || warnings[0].Path != "spec.provisioning.userData" || !strings.Contains(warnings[0].Message, c.says) || warnings[0].Line != 7 || strings.Contains(warnings[0].String(), "correct-horse") {
			t.Errorf("%s: %v, want %q", what, warnings, c.says)
		}
	}
}
