package host

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// A machine under another name is the machine; a clone is the machine without what
// tells it from others.
func TestNamedManifest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.OneHost().Draw(t, "machine")
		text, err := spec.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		o, err := only(spec.Load("m", text, spec.Options{Default: true, Validate: true}))
		if err != nil {
			t.Fatal(err)
		}
		fresh := rapid.Bool().Draw(t, "fresh")
		got, err := namedManifest(&o, "lab", "other", fresh)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "other" || namespaceOr(got.Namespace) != "lab" {
			t.Fatalf("it is %s/%s", got.Namespace, got.Name)
		}
		want := o.VirtualMachine.DeepCopy()
		want.Name, want.Namespace = "other", "lab"
		if fresh {
			withoutIdentity(want)
		}
		a, errA := asJSON(got.VirtualMachine)
		b, errB := asJSON(want)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("got\n%s\nwant\n%s", a, b)
		}
	})
}

func TestNamedManifestKeepsComments(t *testing.T) {
	text := `# the shop
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web} # its name
spec:
  vm:
    maximumCpus: 1
    maximumRam: 1Gi # enough
    machineUuid: 0f4e2a3c-0000-4000-8000-000000000001
    networks:
      - user: {mac: "52:54:00:00:00:01"}
    bootMenu: yes
`
	o, err := only(spec.Load("web.yaml", []byte(text), spec.Options{Default: true, Validate: true}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := namedManifest(&o, "", "copy", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# the shop", "{name: copy} # its name", "# enough", "bootMenu: yes", "user: {}"} {
		if !strings.Contains(string(got.Raw), want) {
			t.Errorf("no %q in\n%s", want, got.Raw)
		}
	}
	if strings.Contains(string(got.Raw), "uuid") || strings.Contains(string(got.Raw), "mac") && strings.Contains(string(got.Raw), "52:54") {
		t.Errorf("an identity stays:\n%s", got.Raw)
	}
	if _, err := namedManifest(&o, "", "No Name", false); err == nil {
		t.Error("a name that is none is taken")
	}
}
