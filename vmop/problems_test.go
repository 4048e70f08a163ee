package vmop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Whatever finds a problem, a program reads it in one form.
func TestProblemsHaveOneSchema(t *testing.T) {
	_, loading := vmop.Load("vm.yaml", []byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web, namespace: shop}\nspec:\n  vm:\n    maximumCpus: 2\n    state: Dancing\n"))
	vm := spec.NewVirtualMachine("shop", "web")
	vm.Spec.VM.MaximumCPUs, vm.Spec.VM.State = new(int32(2)), "Dancing"
	_, forHost := machineconfig.ForHost(spec.NewVirtualMachine("shop", "web"), machineconfig.Host{DataDir: "/data"})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing": {nil, `null`},
		"a file": {fmt.Errorf("read it: %w", loading), `[{"file":"vm.yaml","line":7,"kind":"VirtualMachine","namespace":"shop","name":"web","path":"spec.vm.state",
			"message":"Unsupported value: \"Dancing\": supported values: \"Stopped\", \"Running\""}]`},
		"a machine made in Go": {vmop.Validate(vm), `[{"path":"spec.vm.state","message":"Unsupported value: \"Dancing\": supported values: \"Stopped\", \"Running\""}]`},
		"what a host lacks":    {fmt.Errorf("web: %w", forHost), `[{"path":"local.runtimeDir","message":"is missing"}]`},
		"several": {errors.Join(&runnerconfig.Error{Path: "vm.name", Reason: "is missing"}, fmt.Errorf("build: %w", &qemucmd.Error{Field: "cpu.model", Message: "is none"})),
			`[{"message":"runner configuration: vm.name: is missing"},{"message":"QEMU: cpu.model: is none"}]`},
		"something else": {fmt.Errorf("open: %w", fs.ErrNotExist), `[{"message":"open: file does not exist"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(vmop.Problems(c.err))
			if err != nil {
				t.Fatal(err)
			}
			var is, should any
			if err := errors.Join(json.Unmarshal(got, &is), json.Unmarshal([]byte(c.want), &should)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(should, is); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, got)
			}
		})
	}
	var bad *spec.LoadError
	if !errors.As(loading, &bad) {
		t.Fatal(loading)
	}
	text, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Problems []spec.Problem `json:"problems"`
	}
	if err := json.Unmarshal(text, &back); err != nil || len(back.Problems) != 1 || back.Problems[0] != bad.Problems[0] {
		t.Errorf("%s: %v", text, err)
	}
}
