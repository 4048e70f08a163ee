package machine_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// The configuration is that of the manifest and that of the ConfigMap, and the objects are those
// of Objects.
func TestRenderIsOneMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		s := objects.Settings{}
		config, made, err := machine.Render(vm, s)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := machine.Objects(vm, s); err != nil || !reflect.DeepEqual(made, want) {
			t.Fatalf("the objects are %v, want %v, %v", made, want, err)
		}
		if diff := cmp.Diff(plainConfig(t, vm, &s), config); diff != "" {
			t.Errorf("the configuration is another (-manifest, +rendered):\n%s", diff)
		}
		text, err := runnerconfig.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range made {
			if cm, ok := o.(*corev1.ConfigMap); ok && cm.Name == vm.Name && cm.Data[names.ConfigKey] != string(text) {
				t.Errorf("the ConfigMap has\n%s, want\n%s", cm.Data[names.ConfigKey], text)
			}
		}
	})
}

// What only a stored machine may have stays in the configuration, for who checks it.
func TestRenderKeepsWhatIsAmended(t *testing.T) {
	vm := fixture.Load(t, "basic-vm.yaml")
	vm.Spec.VM.CurrentCPUs, vm.Spec.VM.MaximumCPUs = new(int32(4)), new(int32(2))
	vm.Spec.VM.Disks[0].Bootindex = new(int32(-1))
	config, made, err := machine.Render(vm, objects.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainConfig(t, vm, &objects.Settings{}), config); diff != "" {
		t.Errorf("the configuration is another (-written, +rendered):\n%s", diff)
	}
	if want, err := machine.Objects(vm, objects.Settings{}); err != nil || !reflect.DeepEqual(made, want) {
		t.Errorf("the objects are %v, want %v, %v", made, want, err)
	}
	vm.Name = ""
	if _, _, err := machine.Render(vm, objects.Settings{}); err == nil {
		t.Error("a machine without a name has a configuration")
	}
}

// plainConfig is the configuration of a manifest by itself.
func plainConfig(t interface{ Fatal(...any) }, vm *spec.VirtualMachine, s *objects.Settings) runnerconfig.Config {
	config, err := machineconfig.ForCluster(vm, machineconfig.Options{ResetCounter: new(int64), OpenDisplay: objects.OpensDisplay(vm, s, nil)})
	if err != nil {
		t.Fatal(err)
	}
	objects.PlaceDisplay(&config, manifest.Defaulted(vm), s)
	return config
}
