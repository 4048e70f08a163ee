package spec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/costtest"
	"github.com/vmop/sdk/vmop/spec"
)

// price is what a manifest may cost. What a loader makes of two bytes, a node with its
// place, is some hundred times as large.
var price = costtest.Price{Memory: 64 << 20, PerByte: 4000, TimePerByte: 100 * time.Microsecond}

const header = "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: a}\n"

// attacks are manifests that were expensive once, or look as if.
func attacks() map[string]string {
	long := strings.Repeat("k", 100<<10)
	items := strings.Repeat("1,", 50_000)
	forwards := func(n int, address func(int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{hostAddress: %s, hostPort: 2222, guestPort: 22},", address(i))
		}
		return header + "spec: {vm: {maximumCpus: 1, networks: [{user: {hostForwards: [" + b.String() + "]}}]}}\n"
	}
	return map[string]string{
		"a long key around many items, YAML": header + "spec: {cloudInit: {userData: {? " + long + " : [" + items + "]}}, vm: {maximumCpus: 1}}\n",
		"a long key around many items, JSON": `{"apiVersion":"vmoperator.jdrupes.org/v1","kind":"VirtualMachine","spec":{"` + long + `":[` + items + `1]}}`,
		"a long text, many aliases":          header + "x: &x " + long + "\nspec: {vm: [" + strings.Repeat("*x,", 50_000) + "]}\n",
		"many unknown fields":                header + "spec: {vm: {" + manyKeys(30_000) + "}}\n",
		"many duplicates":                    header + "spec: {vm: {" + strings.Repeat("state: Running,", 30_000) + "}}\n",
		"many items of a wrong type":         header + "spec: {vm: {networks: [" + items + "]}}\n",
		"many empty items":                   header + "spec: {vm: {networks: [" + strings.Repeat("{},", 50_000) + "]}}\n",
		"many forwards of one port":          forwards(50_000, func(int) string { return "0.0.0.0" }),
		"many forwards of many addresses":    forwards(20_000, func(i int) string { return fmt.Sprintf("127.%d.%d.1", i/256, i%256) }),
		"many documents":                     strings.Repeat("---\n", 50_000),
		"a broken line among many":           strings.Repeat("a: b\n", 1000) + "\t: [\n" + strings.Repeat("c: d\n", 20_000),
		"a long name":                        header + "spec: {vm: {cpuModel: '" + long + "'}}\n",
		"many long names":                    header + "spec: {pools: [" + strings.Repeat("'"+long[:1000]+"!',", 300) + "], vm: {maximumCpus: 1}}\n",
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1,", i)
	}
	return b.String()
}

func load(in []byte) func() {
	return func() { _, _ = spec.Load("f", in, spec.Options{Validate: true, Default: true}) }
}

// Neither is the report of a file longer than somebody reads.
func TestManifestsCostInProportion(t *testing.T) {
	for name, in := range attacks() {
		t.Run(name, func(t *testing.T) {
			var err error
			price.Hold(t, []byte(in), func() { _, err = spec.Load("f", []byte(in), spec.Options{Validate: true, Default: true}) })
			if err != nil && len(err.Error()) > 1<<20 {
				t.Errorf("the report has %d bytes", len(err.Error()))
			}
		})
	}
}

// FuzzLoadCost has memory and time as its oracle; FuzzLoad has the meaning.
func FuzzLoadCost(f *testing.F) {
	for _, in := range attacks() {
		if len(in) < 1<<20 {
			f.Add([]byte(in))
		}
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) { price.Hold(t, in, load(in)) })
}

// hugeQuantities are amounts that take minutes, hours or for ever to compare, to
// read or to round.
var hugeQuantities = []string{
	"1e200000000", "1e2147483647", "-1e2147483647", "0e2147483647", "0.0e2000000000", "1e-2147483647",
	"1234567890123456789e200000000", "1.5e100000000", "1e0200000000", "9" + strings.Repeat("0", 40),
}

func TestHugeQuantitiesAreRefusedAtOnce(t *testing.T) {
	for _, q := range hugeQuantities {
		for path, in := range map[string]string{
			"spec.vm.maximumRam":            "{vm: {maximumCpus: 1, maximumRam: '" + q + "'}}",
			"spec.vm.currentRam":            "{vm: {maximumCpus: 1, currentRam: '" + q + "'}}",
			"spec.resources.limits[memory]": "{resources: {limits: {memory: '" + q + "'}, requests: {memory: 1}}, vm: {maximumCpus: 1}}",
			"spec.vm.disks[0].volumeClaimTemplate.spec.resources.requests[storage]": "{vm: {maximumCpus: 1, disks: [{volumeClaimTemplate: {spec: {resources: {requests: {storage: '" + q + "'}, limits: {storage: 1Gi}}}}}]}}",
		} {
			in := []byte(header + "spec: " + in + "\n")
			price.Hold(t, in, func() {
				_, err := spec.Load("f", in, spec.Options{Validate: true})
				if err == nil || !strings.Contains(err.Error(), path+": ") {
					t.Errorf("%s of %s: %v", path, q, err)
				}
			})
		}
	}
}

// Objects of an API server are asked before they are decoded.
func TestStoredQuantitiesAreLookedAtFirst(t *testing.T) {
	for _, q := range hugeQuantities {
		for path, in := range map[string]string{
			"spec.vm.maximumRam":             `{"spec":{"vm":{"maximumRam":"%s"}}}`,
			"spec.vm.currentRam":             `{"spec":{"vm":{"currentRam":"%s"}}}`,
			"spec.resources.requests.memory": `{"spec":{"resources":{"requests":{"memory":"%s"}}}}`,
			"spec.vm.disks[0].volumeClaimTemplate.spec.resources.limits.storage": `{"spec":{"vm":{"disks":[{"volumeClaimTemplate":{"spec":{"resources":{"limits":{"storage":"%s"}}}}}]}}}`,
			"status.ram": `{"status":{"ram":"%s"}}`,
		} {
			err := spec.CheckQuantities(fmt.Appendf(nil, in, q))
			if err == nil || !strings.Contains(err.Error(), path+": ") {
				t.Errorf("%s of %s: %v", path, q, err)
			}
		}
	}
	for _, in := range []string{
		`{"metadata":{"labels":{"commit":"1e2345678"},"uid":"0e123456-0000"},"spec":{"vm":{"maximumRam":"16Gi","currentRam":1073741824}}}`,
		`{"spec":{"cloudInit":{"userData":{"limits":{"a":"1e99999"}}},"vm":{"maximumRam":"1e9"}}}`, `[]`, ``, `{"spec":1}`,
	} {
		if err := spec.CheckQuantities([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// However a quantity is written in JSON.
func TestEscapedQuantitiesAreLookedAt(t *testing.T) {
	for _, q := range []string{`"1\u0065200000000"`, `"1\u00452000"`, `"\u0031e2000"`, `"+1e\u002b2000"`, `1e2000`, `-1e2000`, ` 1e+2000`, `"<\u003c"`, `"-1e2000"`, `".1e2000"`} {
		err := spec.CheckQuantities([]byte(`{"spec":{"vm":{"maximumRam":` + q + `}}}`))
		if (err == nil) != (q == `"<\u003c"`) {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// To look at a machine takes no time, as long as it has no such number: its identifiers
// are none, nor is markup in its texts.
func TestIdentifiersAreNoQuantities(t *testing.T) {
	machine := []byte(`{"metadata":{"uid":"2f4e3b99-967e-49b8-a8b1-88e1234567cf","labels":{"digest":"ab9e12345678901234567890123456789012345678901234"}},"spec":{"cloudInit":{"a":"\u003cx\u003e \u0026"},"vm":{"maximumRam":"16Gi"}}}`)
	if n := testing.AllocsPerRun(10, func() { _ = spec.CheckQuantities(machine) }); n > 0 {
		t.Errorf("%v allocations: it was decoded", n)
	}
}

// What passes can be decoded and compared in no time.
func FuzzCheckQuantities(f *testing.F) {
	for _, q := range append(hugeQuantities, "1Gi", "1E", "1.5e3", "1e-9", "100m") {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"vm": map[string]any{"maximumRam": q}}})
		if err != nil || spec.CheckQuantities(text) != nil {
			return
		}
		price.Hold(t, text, func() {
			var vm spec.VirtualMachine
			if json.Unmarshal(text, &vm) == nil && vm.Spec.VM.MaximumRAM != nil {
				spec.CompareQuantities(*vm.Spec.VM.MaximumRAM, resource.MustParse("1Gi"))
				spec.Bytes(*vm.Spec.VM.MaximumRAM)
				spec.Validate(&vm)
			}
		})
	})
}

func TestCompareQuantitiesIsCmp(t *testing.T) {
	quantity := rapid.Custom(func(t *rapid.T) resource.Quantity {
		text := rapid.StringMatching(`-?[0-9]{1,25}(\.[0-9]{0,4})?(Ki|Mi|Gi|Ei|n|u|m|k|M|E|e-?[0-9]{1,2})?`).Draw(t, "quantity")
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(err)
		}
		return q
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := quantity.Draw(t, "a"), quantity.Draw(t, "b")
		if got, want := spec.CompareQuantities(a, b), a.Cmp(b); got != want {
			t.Fatalf("%s and %s: %d, want %d", a.String(), b.String(), got, want)
		}
		if a.CmpInt64(math.MaxInt64) < 0 && a.CmpInt64(math.MinInt64) > 0 && spec.Bytes(a) != a.Value() {
			t.Fatalf("%s is %d bytes, want %d", a.String(), spec.Bytes(a), a.Value())
		}
	})
	// No zero is multiplied by ten as often as its exponent says.
	zero := resource.MustParse("0e2147483647")
	price.Hold(t, nil, func() {
		for range 100 {
			spec.Bytes(zero)
			spec.CompareQuantities(zero, zero)
		}
	})
	// Those that were not read by Load, such as a program's.
	for _, q := range []string{"1e2147483647", "0e2147483647", "1e200000000"} {
		huge, one := resource.MustParse(q), resource.MustParse("1Gi")
		want := 1
		if q[0] == '0' {
			want = -1
		}
		if spec.CompareQuantities(huge, one) != want || spec.CompareQuantities(one, huge) != -want {
			t.Errorf("%s is not rightly compared with 1Gi", q)
		}
		if n := spec.Bytes(huge); want > 0 && n != math.MaxInt64 || want < 0 && n != 0 {
			t.Errorf("%s has %d bytes", q, n)
		}
		cpus := int32(1)
		vm := &spec.VirtualMachine{}
		vm.Name, vm.Spec.VM.MaximumCPUs, vm.Spec.VM.MaximumRAM, vm.Spec.VM.CurrentRAM = "a", &cpus, &huge, &one
		if len(spec.Validate(vm)) == 0 {
			t.Errorf("%s is valid", q)
		}
	}
}
