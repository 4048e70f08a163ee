package operatorconfig_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/operatorconfig"
)

// samples are values of the options that are environment variables: how they are
// written in a file, and in a variable.
var samples = map[string]struct{ file, variable string }{
	"VMOP_DEVICE_GROUPS":                     {"[993, 6]", "993,6"},
	"VMOP_RUNNER_IMAGES":                     {`{"ghcr.io/mnlipp/*": "a/b:c", "x/y:1": "a/b:d"}`, "ghcr.io/mnlipp/*=a/b:c,x/y:1=a/b:d"},
	"VMOP_RUNNER_IMAGE":                      {`"registry.example.org/runner:1.0"`, "registry.example.org/runner:1.0"},
	"VMOP_RUNNER_PULL_POLICY":                {"Never", "Never"},
	"VMOP_DISPLAY_HOST_PORTS":                {"5910-5999", "5910-5999"},
	"VMOP_KVM_RESOURCE":                      {"devices.kubevirt.io/kvm", " devices.kubevirt.io/kvm\n"},
	"VMOP_PRIVILEGED":                        {"true", "true"},
	"VMOP_TAKE_OVER_DATA":                    {"true", "true"},
	"VMOP_NAMESPACES":                        {"[lab, prod]", "lab,prod"},
	"VMOP_CONCURRENCY":                       {"4", "4"},
	"VMOP_OPERATIONS_KEPT":                   {"5", "5"},
	"VMOP_OPERATIONS_KEPT_FOR":               {"90m", "90m"},
	"VMOP_TRUST_AUTHORS":                     {"true", "true"},
	"VMOP_ALLOWED_IMAGES":                    {`["registry.example.org/*"]`, "registry.example.org/*"},
	"VMOP_ALLOWED_BRIDGES":                   {"[br0, lab*]", "br0 lab*"},
	"VMOP_ALLOWED_TOLERATIONS":               {"[dedicated, nvidia.com/*]", "dedicated nvidia.com/*"},
	"VMOP_ALLOWED_PRIORITY_CLASSES":          {"[machines-*]", "machines-*"},
	"VMOP_ALLOWED_POD_ANNOTATIONS":           {"[prometheus.io/*]", "prometheus.io/*"},
	"VMOP_ALLOW_NODE_NAME":                   {"yes", "yes"},
	"VMOP_ALLOW_HOST_FORWARDS":               {"on", "on"},
	"VMOP_ALLOW_OPEN_DISPLAYS":               {"true", "true"},
	"VMOP_CLONING_PROVISIONERS":              {`["*.example.com"]`, "*.example.com"},
	"VMOP_EXCLUDE_NAMESPACES":                {"[lab, prod]", "lab, prod"},
	"VMOP_IMAGE_NAMESPACE":                   {"golden", "golden"},
	"VMOP_ALLOWED_IMAGE_HOSTS":               {"[localhost]", "localhost"},
	"VMOP_ALLOWED_IMAGE_PATHS":               {"[/srv]", "/srv"},
	"VMOP_ALLOWED_SHARES":                    {"[shared-*]", "shared-*"},
	"VMOP_ALLOWED_LOAD_BALANCER_ANNOTATIONS": {`["metallb.io/*"]`, "metallb.io/*"},
	"VMOP_CPU_OVERCOMMIT":                    {"3.5", "3.5"},
	"VMOP_RAM_OVERCOMMIT":                    {"1", "1"},
}

// A variable means what the option of the file does.
func TestEveryVariableIsItsOption(t *testing.T) {
	for name, option := range operatorconfig.Variables() {
		sample, ok := samples[name]
		if !ok {
			t.Errorf("no sample of %s", name)
			continue
		}
		want, _, err := operatorconfig.Parse("c", []byte(fmt.Sprintf("%q: {%s: %s}", option.Component, option.Name, sample.file)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, remarks, err := operatorconfig.ParseEnvironment(operatorconfig.Config{}, []string{name + "=" + sample.variable})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(remarks.Warnings) > 0 {
			t.Errorf("%s: %v, %v\n%s", name, remarks, err, diff)
		}
		if cmp.Equal(got, operatorconfig.Config{}) {
			t.Errorf("%s has no effect", name)
		}
	}
}

func TestTheEnvironmentWins(t *testing.T) {
	file, _, err := operatorconfig.Parse("c", []byte("/Operator: {runnerImage: a, namespaces: [a, b], concurrency: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	want := file
	want.Settings.RunnerImage, want.Namespaces = "1.0", []string{"c", "d"}
	got, remarks, err := operatorconfig.ParseEnvironment(file, []string{"HOME=/", "VMOP_RUNNER_IMAGE=1.0", "VMOP_NAMESPACES=c d, c", "VMOP_CONCURRENCY=", "VMOP_TEST_X=1"})
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(remarks.Warnings) > 0 {
		t.Errorf("%v, %v\n%s", remarks, err, diff)
	}
	if !slices.Equal(file.Namespaces, []string{"a", "b"}) {
		t.Errorf("the argument was changed: %v", file.Namespaces)
	}
}

func TestWrongVariables(t *testing.T) {
	for entry, want := range map[string]string{
		"VMOP_CPU_OVERCOMMIT=half":          `VMOP_CPU_OVERCOMMIT: found "half", want a number above 0 such as 1.25`,
		"VMOP_DISPLAY_HOST_PORTS=5999-5910": `VMOP_DISPLAY_HOST_PORTS: found "5999-5910", want a range of ports such as 5910-5999`,
		"VMOP_DISPLAY_HOST_PORTS=0-1":       `VMOP_DISPLAY_HOST_PORTS: found "0-1", want a range of ports such as 5910-5999`,
		"VMOP_PRIVILEGED=maybe":             "VMOP_PRIVILEGED: found a text, want true or false",
		"VMOP_RUNNER_PULL_POLICY=always":    `VMOP_RUNNER_PULL_POLICY: found "always", want Always, IfNotPresent or Never`,
		"VMOP_NAMESPACES=lab,Not_A_Space":   `VMOP_NAMESPACES: found "Not_A_Space", want the name of a namespace: small letters, digits and dashes, at most 63`,
	} {
		_, _, err := operatorconfig.ParseEnvironment(operatorconfig.Config{}, []string{entry})
		if err == nil || err.Error() != want || !errors.As(err, new(*operatorconfig.Error)) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	_, remarks, err := operatorconfig.ParseEnvironment(operatorconfig.Config{}, []string{"VMOP_RUNNERIMAGE=a"})
	if err != nil || len(remarks.Warnings) != 1 || !strings.Contains(remarks.Warnings[0].String(), strings.Join(slices.Sorted(maps.Keys(operatorconfig.Variables())), ", ")) {
		t.Errorf("a misspelt variable: %v, %v", remarks, err)
	}
}
