package vmop_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// theirs are the files of VM-Operator's repository, by their names.
func theirs(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "vm-operator", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = data
	}
	return out
}

// Each manifest is valid and renders, for a cluster that is configured as any of
// VM-Operator's, and the runner takes its configuration.
func TestTheirManifests(t *testing.T) {
	settings := []vmop.Settings{{}}
	for name, data := range theirs(t, "configurations") {
		if config, _, err := operatorconfig.Parse(name, data); err == nil {
			settings = append(settings, config.Settings)
		}
	}
	for name, data := range theirs(t, "manifests") {
		t.Run(name, func(t *testing.T) {
			all, err := spec.Load(name, data, spec.Options{Validate: true})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d objects, %v", len(all), err)
			}
			vm := all[0].VirtualMachine
			if vm == nil {
				return
			}
			for _, s := range settings {
				r, err := vmop.Render(vm, vmop.RenderOptions{Settings: s})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Objects) < 3 || len(r.Command.Args()) < 20 {
					t.Errorf("%d objects, %v", len(r.Objects), r.Command.Args())
				}
				written, err := runnerconfig.Marshal(r.Config)
				if err != nil {
					t.Fatal(err)
				}
				if _, warnings, err := runner.ReadConfig(written); err != nil || len(warnings) > 0 {
					t.Errorf("%v, %v", warnings, err)
				}
			}
		})
	}
}

// Each configuration of the manager is read. What it is warned of is in a golden
// file: one of the examples has an error of YAML's, and some options never had an
// effect.
func TestTheirConfigurations(t *testing.T) {
	files := theirs(t, "configurations")
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintln(&b, name)
		config, remarks, err := operatorconfig.Parse("config.yaml", files[name])
		if err != nil {
			fmt.Fprintln(&b, "  error:", err)
			continue
		}
		for _, p := range remarks.Warnings {
			fmt.Fprintln(&b, "  warning:", p)
		}
		lb := config.Settings.LoadBalancer
		if lb == nil {
			lb = &objects.LoadBalancer{}
		}
		fmt.Fprintf(&b, "  namespaces %v, CPU %v, RAM %v, load balancer %v %v\n",
			config.Namespaces, config.Settings.CPUOvercommit, config.Settings.RAMOvercommit, lb.Labels, lb.Annotations)
	}
	golden(t, "vm-operator/configurations.txt", b.String())
}

// Each configuration of the runner leads to a command line.
func TestTheirRunnerConfigurations(t *testing.T) {
	for name, data := range theirs(t, "runners") {
		t.Run(name, func(t *testing.T) {
			c, warnings, err := runner.ReadConfig(data)
			if err != nil {
				t.Fatal(err)
			}
			// The sample has keys that its runner does not know either.
			for _, w := range warnings {
				if !strings.Contains(name, "with-its-comments") {
					t.Error(w)
				}
			}
			m, err := runnerconfig.Machine(&c, runnerconfig.Facts{
				UUID: "6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11", DataDir: "/var/local/vm-data", RuntimeDir: "/run/vm",
				AddressMap: qemucmd.NewestAddressMap, Drives: make([]runnerconfig.DriveFacts, len(c.Runner.VM.Drives)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if cmd, err := qemucmd.Build(m, qemucmd.GenericHost()); err != nil || len(cmd.Args()) < 20 {
				t.Errorf("%v, %v", cmd.Args(), err)
			}
		})
	}
}

// Each field of VM-Operator's definitions is one of ours, of the same type; a
// quantity may be a number, too.
func TestTheirFieldsAreOurs(t *testing.T) {
	data, err := os.ReadFile("testdata/vm-operator/definitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]map[string]any{}
	for kind, file := range map[string]string{spec.KindVirtualMachine: spec.ResourceVirtualMachines, spec.KindVMPool: spec.ResourceVMPools} {
		text, err := os.ReadFile(filepath.Join("..", "deploy", "crds", spec.GroupName+"_"+file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		schemas[kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		schema := schemas[f[0]]
		for part := range strings.SplitSeq(f[1], ".") {
			name, list := strings.CutSuffix(part, "[]")
			properties, _ := schema["properties"].(map[string]any)
			schema, _ = properties[name].(map[string]any)
			if list {
				schema, _ = schema["items"].(map[string]any)
			}
		}
		quantity := schema["x-kubernetes-int-or-string"] == true && f[2] == "string"
		if schema == nil || schema["type"] != f[2] && !quantity {
			t.Errorf("%s: %v", strings.TrimSpace(line), schema["type"])
		}
	}
}
