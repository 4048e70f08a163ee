package dialect_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// An operation comes back from Deckhouse's terms as it was, and one of a type that is
// not carried out here is left out, which is told.
func TestOperationsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := []spec.OperationType{spec.OperationStart, spec.OperationStop, spec.OperationRestart}
		kind := rapid.SampledFrom(append(known, spec.OperationEvict, spec.OperationMigrate, "Restore", "Clone", "Newest")).Draw(t, "type")
		from := spectest.VirtualMachine().Draw(t, "vm")
		o := spec.NewOperation(from.Namespace, from.Name, kind)
		if rapid.Bool().Draw(t, "named") {
			o.Name, o.GenerateName = spectest.Label().Draw(t, "name"), ""
		}
		o.Labels = from.Labels
		o.Spec.Force = kind != spec.OperationStart && rapid.Bool().Draw(t, "force")
		theirs := o.DeepCopy()
		theirs.APIVersion = "virtualization.deckhouse.io/v1alpha2"
		data, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		translated, err := dialect.Translate(load(t, data))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(known, kind) {
			if len(translated.Operations) != 0 || len(translated.LeftOut) != 1 || !strings.Contains(translated.LeftOut[0].Message, string(kind)) {
				t.Fatalf("%+v", translated)
			}
			return
		}
		if len(translated.Operations) != 1 || len(translated.LeftOut)+len(translated.Operations[0].Notes) != 0 {
			t.Fatalf("%+v", translated)
		}
		if got := translated.Operations[0].VirtualMachineOperation; !apiequality.Semantic.DeepEqual(o, got) {
			t.Fatalf("came back different: %s", cmp.Diff(o, got))
		}
	})
}

// What an operation lacks is told at its place.
func TestIncompleteOperations(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"{virtualMachineName: a}", "in.yaml:4: VirtualMachineOperation x: spec.type: is required; it says what is done: Start, Stop or Restart"},
		{"{type: Stop}", "in.yaml:4: VirtualMachineOperation x: spec.virtualMachineName: is required; it names the machine that the operation is about"},
	} {
		text := "apiVersion: virtualization.deckhouse.io/v1alpha2\nkind: VirtualMachineOperation\nmetadata: {name: x}\nspec: " + c.spec + "\n"
		if translated, err := dialect.Translate(load(t, []byte(text))); fmt.Sprint(err) != c.want || len(translated.Operations) > 0 {
			t.Errorf("%s: %v, want %s", c.spec, err, c.want)
		}
	}
}

// Each kind that is said to be understood is, and no other one of these groups.
func TestKinds(t *testing.T) {
	try := func(kind, version string) (made, left int) {
		name, group, _ := strings.Cut(kind, ".")
		text := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: a}\nspec: {}\n", group, version, name)
		translated, err := dialect.Translate(load(t, []byte(text)))
		made = len(translated.All())
		if err != nil { // it was looked at
			made++
		}
		return made, len(translated.LeftOut)
	}
	for _, kind := range dialect.Kinds() {
		if made, left := try(kind, "v1"); made != 1 || left != 0 {
			t.Errorf("%s: translated %d times, left out %d times", kind, made, left)
		}
		if slices.Contains(dialect.Companions(), kind) {
			t.Errorf("%s is translated, and no companion", kind)
		}
	}
	for _, kind := range dialect.Companions() {
		if made, left := try(kind, "v1beta1"); made != 0 || left != 0 {
			t.Errorf("%s: translated %d times, left out %d times", kind, made, left)
		}
	}
	for _, kind := range []string{"VirtualMachineSnapshot.snapshot.kubevirt.io", "VirtualMachinePool.pool.kubevirt.io", "VirtualMachineIPAddress.virtualization.deckhouse.io"} {
		if made, left := try(kind, "v1"); made != 0 || left != 1 {
			t.Errorf("%s: translated %d times, left out %d times", kind, made, left)
		}
	}
	if made, left := try("Deployment.apps", "v1"); made+left != 0 {
		t.Error("a Deployment is none of its business")
	}
}
