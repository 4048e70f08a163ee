package operatorconfig_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Each testdata/*.yaml has what is said about it, and what it means, beside it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := describe(t, filepath.Base(file), data)
		golden := strings.TrimSuffix(file, ".yaml") + ".txt"
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: run with -update to accept (%v):\n%s", golden, err, cmp.Diff(string(want), string(got)))
		}
	}
}

func describe(t *testing.T, name string, data []byte) []byte {
	c, remarks, err := operatorconfig.Parse(name, data)
	var b bytes.Buffer
	if err != nil {
		if c.Settings.LoadBalancer != nil || c.Namespaces != nil {
			t.Errorf("%s: a configuration beside an error", name)
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintln(&b, "error:", line)
		}
	}
	for _, p := range remarks.Warnings {
		fmt.Fprintln(&b, "warning:", p)
	}
	for _, p := range remarks.Notes {
		fmt.Fprintln(&b, "note:", p)
	}
	if err == nil {
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.Bytes()
}

func TestNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "null", `"/Manager": {}`, `"/Manager":`, "/Manager: {/Controller: {/Reconciler: {cpuOvercommit: null}}}"} {
		got, remarks, err := operatorconfig.Parse("config.yaml", []byte(text))
		if diff := cmp.Diff(operatorconfig.Config{}, got); diff != "" || err != nil || len(remarks.Warnings)+len(remarks.Notes) > 0 {
			t.Errorf("%q: %v, %v\n%s", text, err, remarks, diff)
		}
	}
}

// However the components are nested, the same options mean the same.
func TestNesting(t *testing.T) {
	want := operatorconfig.Config{
		Settings: objects.Settings{RunnerDataStorageClass: "fast", CPUOvercommit: 3},
		Console:  operatorconfig.Console{PasswordValidity: 20 * time.Second},
	}
	for _, text := range []string{
		`{"/Manager": {"/Controller": {"/Reconciler": {runnerDataPvc: {storageClassName: fast}, cpuOvercommit: 3, "/DisplaySecretReconciler": {passwordValidity: 20}}}}}`,
		`{"/Manager/Controller/Reconciler": {runnerDataPvc: {storageClassName: fast}, cpuOvercommit: 3, "/DisplaySecretReconciler": {passwordValidity: "20"}}}`,
		`{"/Manager": {"/Controller/Reconciler/": {runnerDataPvc: {storageClassName: fast}}}, "/Manager/Controller": {"/Reconciler": {cpuOvercommit: "3"}, "/DisplaySecretMonitor": {passwordValidity: 20}}}`,
		`{_Manager: {_Controller: {_Reconciler: {runnerDataPvc: {storageClassName: fast}, cpuOvercommit: 3.0, _DisplaySecretReconciler: {passwordValidity: 20}}}}}`,
		"base: &base {cpuOvercommit: 3, ramOvercommit: null}\n\"/Manager/Controller/Reconciler\":\n  <<: *base\n  runnerDataPvc: {storageClassName: fast}\n  /DisplaySecretReconciler: {passwordValidity: 20}\n",
	} {
		got, _, err := operatorconfig.Parse("config.yaml", []byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s\n%v\n%s", text, err, diff)
		}
	}
}

func TestLoadBalancerService(t *testing.T) {
	for text, want := range map[string]*objects.LoadBalancer{
		"false": nil, "no": nil, "null": nil,
		"true": {}, "on": {}, "{}": {},
		"{labels: {a: b, c: null}, annotations: null}":         {Labels: map[string]string{"a": "b"}},
		`{annotations: {metallb.io/ip: "10.0.0.1", x: "a b"}}`: {Annotations: map[string]string{"metallb.io/ip": "10.0.0.1", "x": "a b"}},
	} {
		got, _, err := operatorconfig.Parse("config.yaml", []byte(`"/Manager/Controller/Reconciler": {loadBalancerService: `+text+"}"))
		if diff := cmp.Diff(want, got.Settings.LoadBalancer); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

func TestOptionsThatNamespacesWeigh(t *testing.T) {
	got, remarks, err := operatorconfig.Parse("c", []byte("/Manager/Controller: {namespace: lab}\n/Operator: {namespaces: [a, b, a]}\n"))
	if err != nil || cmp.Diff(got.Namespaces, []string{"a", "b"}) != "" || len(remarks.Warnings) != 1 || remarks.Warnings[0].Line != 1 {
		t.Errorf("%v, %v, %v", got.Namespaces, remarks, err)
	}
	if got, _, err = operatorconfig.Parse("c", []byte("/Manager/Controller: {namespace: lab}")); err != nil || cmp.Diff(got.Namespaces, []string{"lab"}) != "" {
		t.Errorf("%v, %v", got.Namespaces, err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	_, _, err := operatorconfig.Parse("c", []byte("/Operator: {privileged: maybe, concurency: 1}"))
	var e *operatorconfig.Error
	if !errors.As(err, &e) || len(e.Problems) != 1 || len(e.Remarks.Warnings) != 1 || e.Problems[0].Path != "/Operator: privileged" {
		t.Errorf("%#v", err)
	}
}

func TestAliasesDoNotExplode(t *testing.T) {
	var b strings.Builder
	b.WriteString("/Manager: &a0 {x: 1, y: 2}\n")
	for i := range 30 {
		fmt.Fprintf(&b, "/Manager/%d: &a%d {/A: *a%d, /B: *a%d}\n", i, i+1, i, i)
	}
	if _, _, err := operatorconfig.Parse("c", []byte(b.String())); err == nil {
		t.Error("no error")
	}
	if _, _, err := operatorconfig.Parse("c", []byte("/Manager: &a {/Manager: *a}")); err == nil {
		t.Error("no error for an alias inside of what it repeats")
	}
}

// What a program writes is read as what it was.
func TestRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,20}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		want := operatorconfig.Config{
			Settings: objects.Settings{
				CPUOvercommit: rapid.Float64Range(0.01, 1000).Draw(t, "cpu"), RAMOvercommit: rapid.Float64Range(0.01, 1000).Draw(t, "ram"),
				RunnerDataStorageClass: name.Draw(t, "class"), RunnerImage: name.Draw(t, "image"),
				LoggingProperties: rapid.StringMatching(`[ -~]{1,20}\n`).Draw(t, "logging"),
				Privileged:        rapid.Bool().Draw(t, "privileged"),
				LoadBalancer:      &objects.LoadBalancer{Labels: map[string]string{name.Draw(t, "label"): name.Draw(t, "value")}},
			},
			Namespaces:        []string{name.Draw(t, "namespace")},
			ExcludeNamespaces: []string{name.Draw(t, "excluded namespace")},
			Concurrency:       rapid.IntRange(1, 100).Draw(t, "concurrency"),
			Console: operatorconfig.Console{
				PasswordValidity: time.Duration(rapid.IntRange(1, 100).Draw(t, "validity")) * time.Second,
				PreferredFamily:  rapid.SampledFrom([]console.Family{console.IPv4, console.IPv6}).Draw(t, "family"),
				KeepFile:         rapid.Bool().Draw(t, "keep"),
			},
		}
		s := want.Settings
		data, err := yaml.Marshal(map[string]any{
			"/Manager": map[string]any{
				"/Controller": map[string]any{"/Reconciler": map[string]any{
					"cpuOvercommit": s.CPUOvercommit, "ramOvercommit": s.RAMOvercommit, "loggingProperties": s.LoggingProperties,
					"runnerDataPvc":            map[string]any{"storageClassName": s.RunnerDataStorageClass},
					"loadBalancerService":      map[string]any{"labels": s.LoadBalancer.Labels},
					"/DisplaySecretReconciler": map[string]any{"passwordValidity": int(want.Console.PasswordValidity.Seconds())},
				}},
				"/GuiHttpServer/ConsoleWeblet/WebConsole/ComponentCollector/VmAccess": map[string]any{
					"displayResource":      map[string]any{"preferredIpVersion": want.Console.PreferredFamily},
					"deleteConnectionFile": !want.Console.KeepFile,
				},
			},
			"/Operator": map[string]any{
				"runnerImage": s.RunnerImage, "privileged": s.Privileged,
				"namespaces": want.Namespaces, "excludeNamespaces": want.ExcludeNamespaces, "concurrency": want.Concurrency,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, remarks, err := operatorconfig.Parse("c", data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(remarks.Warnings) > 0 {
			t.Fatalf("%s\n%v %v\n%s", data, err, remarks.Warnings, diff)
		}
	})
}

// What is said twice is as if it was said once, and nothing changes nothing.
func TestOverItself(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base, _, err := operatorconfig.Parse(file, data)
		if err != nil {
			continue
		}
		for what, above := range map[string][]byte{"itself": data, "nothing": nil} {
			got, _, err := operatorconfig.ParseOver(base, file, above)
			if diff := cmp.Diff(base, got); diff != "" || err != nil {
				t.Errorf("%s below %s: %v\n%s", file, what, err, diff)
			}
		}
	}
}

func TestTheLaterFileWins(t *testing.T) {
	base, _, err := operatorconfig.Parse("theirs", []byte(`
/Manager/Controller:
  namespace: qemu-vms
  /Reconciler: {cpuOvercommit: 4, ramOvercommit: 2, loadBalancerService: {labels: {a: b}}, runnerDataPvc: {storageClassName: ceph}, /DisplaySecretReconciler: {passwordValidity: 30}}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, remarks, err := operatorconfig.ParseOver(base, "ours", []byte(`
/Manager/Controller/Reconciler: {cpuOvercommit: 3, loadBalancerService: false}
/Operator: {runnerImage: "example.org/runner:1", namespaces: [lab]}
`))
	want := operatorconfig.Config{
		Settings:   objects.Settings{CPUOvercommit: 3, RAMOvercommit: 2, RunnerDataStorageClass: "ceph", RunnerImage: "example.org/runner:1"},
		Namespaces: []string{"lab"},
		Console:    operatorconfig.Console{PasswordValidity: 30 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(remarks.Warnings) > 0 {
		t.Errorf("%v, %v\n%s", err, remarks, diff)
	}
	if base.Settings.CPUOvercommit != 4 || base.Settings.LoadBalancer == nil {
		t.Error("the base has changed")
	}
}
