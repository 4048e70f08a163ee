package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// schemaOf reads the schema of the only version of a generated definition.
func schemaOf(t *testing.T, plural string) map[string]any {
	t.Helper()
	file := "../../deploy/crds/" + GroupName + "_" + plural + ".yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run `make generate`", err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	return version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
}

// applyDefaults does to a value what an API server does with the defaults of a
// structural schema: nulls that are not allowed and have a default are
// dropped, absent fields get theirs, and then it goes on inside of both.
func applyDefaults(value any, schema map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			property := p.(map[string]any)
			def, ok := property["default"]
			if !ok {
				continue
			}
			if old, there := v[name]; !there || old == nil && property["nullable"] != true {
				v[name] = deepCopy(def)
			}
		}
		additional, _ := schema["additionalProperties"].(map[string]any)
		for name, child := range v {
			if p, ok := properties[name].(map[string]any); ok {
				applyDefaults(child, p)
			} else if additional != nil {
				applyDefaults(child, additional)
			}
		}
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for _, item := range v {
				applyDefaults(item, items)
			}
		}
	}
}

func deepCopy(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// crdDefaulted returns what a client would get back after it has stored data.
func crdDefaulted[T any](t interface{ Fatal(...any) }, data []byte, schema map[string]any) *T {
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	applyDefaults(tree, schema)
	stored, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(stored, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// CheckDefaultsAgainstCRD compares Default with the defaults of the generated
// definition. It is exported to the property test, which draws its machines
// from a package that imports this one.
func CheckDefaultsAgainstCRD(t *testing.T) func(t interface{ Fatal(...any) }, vm *VirtualMachine) {
	schema := schemaOf(t, ResourceVirtualMachines)
	return func(t interface{ Fatal(...any) }, vm *VirtualMachine) {
		// Raw JSON would lose the form of its numbers on this way.
		vm = vm.DeepCopy()
		vm.Status.OSInfo = nil
		if c := vm.Spec.CloudInit; c != nil {
			c.UserData, c.NetworkConfig = nil, nil
		}
		data, err := json.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		want := crdDefaulted[VirtualMachine](t, data, schema)
		if d := want.Spec.VM.Display; d != nil && d.VNC != nil && d.VNC.Port == nil && !d.VNC.UnixSocket {
			port := int32(5901) // which depends on another field
			d.VNC.Port = &port
		}
		Default(vm)
		if !apiequality.Semantic.DeepEqual(want, vm) {
			t.Fatal("Default and the definition differ (-definition +Default):\n" + cmp.Diff(want, vm))
		}
	}
}

func TestDefaultOfTheSmallestMachine(t *testing.T) {
	data := []byte(`{"apiVersion":"vmoperator.jdrupes.org/v1","kind":"VirtualMachine","spec":{"vm":{"maximumCpus":1}}}`)
	vm := crdDefaulted[VirtualMachine](t, data, schemaOf(t, ResourceVirtualMachines))
	got, err := yaml.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	Golden(t, "testdata/defaults.golden", got)
}

func TestDefaultPoolMatchesDefinition(t *testing.T) {
	schema := schemaOf(t, ResourceVMPools)
	for _, may := range [][]PoolAction{nil, {}, {PoolActionStart}} {
		pool := &VmPool{Spec: VmPoolSpec{Permissions: []PoolPermission{{User: "a", May: may}}}}
		data, err := json.Marshal(pool)
		if err != nil {
			t.Fatal(err)
		}
		want := crdDefaulted[VmPool](t, data, schema)
		DefaultPool(pool)
		if diff := cmp.Diff(want, pool); diff != "" {
			t.Errorf("may %#v: (-definition +DefaultPool)\n%s", may, diff)
		}
	}
}

// The loader has to know which fields have a default, and the documentation
// of a field has to begin with the name that people write.
func TestTypesMatchDefinitions(t *testing.T) {
	check := func(root reflect.Type, plural string) {
		seen := map[reflect.Type]bool{}
		var visit func(reflect.Type, map[string]any, string)
		visit = func(goType reflect.Type, schema map[string]any, path string) {
			for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
				if items, ok := schema["items"].(map[string]any); ok {
					schema = items
				}
				goType = goType.Elem()
			}
			if goType.Kind() != reflect.Struct || goType.PkgPath() != root.PkgPath() || seen[goType] {
				return
			}
			seen[goType] = true
			properties, _ := schema["properties"].(map[string]any)
			required, _ := schema["required"].([]any)
			var defaulted, names []string
			for name, p := range properties {
				property := p.(map[string]any)
				names = append(names, name)
				if _, ok := property["default"]; ok {
					defaulted = append(defaulted, name)
				}
				description, _ := property["description"].(string)
				if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) && !strings.HasPrefix(description, name+" ") {
					t.Errorf("%s.%s: the description must begin with the name: %q", path, name, description)
				}
			}
			var fieldNames []string
			for _, f := range jsonFields(goType) {
				fieldNames = append(fieldNames, f.name)
				isRequired := slices.Contains(required, any(f.name))
				if f.ours && isRequired != (!f.optional && !f.defaulted) && !isRequired {
					t.Errorf("%s.%s: the loader demands it, the definition does not", path, f.name)
				}
				if isRequired && (f.optional && !f.defaulted) {
					t.Errorf("%s.%s: the definition demands it, the loader does not", path, f.name)
				}
				if p, ok := properties[f.name].(map[string]any); ok {
					visit(f.typ, p, path+"."+f.name)
				}
			}
			equalSets(t, path+": defaults", defaulted, defaultedFields(goType))
			equalSets(t, path+": fields", names, fieldNames)
		}
		visit(root, schemaOf(t, plural), root.Name())
	}
	for _, k := range Kinds() {
		check(reflect.TypeOf(k.New()).Elem(), k.Plural)
	}
}

func equalSets(t *testing.T, what string, a, b []string) {
	t.Helper()
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	if !slices.Equal(a, b) {
		t.Errorf("%s: definition %v, Go %v", what, a, b)
	}
}

// The three ways to name an initial condition must agree.
func TestInitialConditionsHaveAllTypes(t *testing.T) {
	vm := &VirtualMachine{}
	Default(vm)
	for i, c := range vm.Status.Conditions {
		if c.Type != ConditionTypes()[i] {
			t.Errorf("condition %d is %s, want %s", i, c.Type, ConditionTypes()[i])
		}
	}
	if n := len(vm.Status.Conditions); n != len(ConditionTypes()) {
		t.Error(fmt.Sprint(n, " conditions"))
	}
}

// RetentionPattern returns the pattern of the generated definition, for the
// tests outside of the package.
func RetentionPattern(t *testing.T) string {
	spec := schemaOf(t, ResourceVMPools)["properties"].(map[string]any)["spec"].(map[string]any)
	return spec["properties"].(map[string]any)["retention"].(map[string]any)["pattern"].(string)
}
